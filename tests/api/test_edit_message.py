"""edit_message: other text, all else byte for byte, the old version kept."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def edit(caller, conversation_id, seq=1, content="new", **arguments):
    return caller.row(
        "edit_message",
        conversation_id=conversation_id,
        seq=seq,
        content=content,
        **arguments,
    )


@pytest.fixture
def one(ann, conversation_id):
    """A conversation with one text message of 5 tokens."""
    ann.say(conversation_id, 5)
    return conversation_id


def test_gives_the_message_with_its_new_text(ann, one):
    before = ann.live(one)[0]
    row = edit(ann, one, tokens=7)

    assert row == before | {
        "content": "new",
        "tokens": 7,
        "revision": 2,
    }
    assert ann.live(one) == [row]


def test_keeps_place_time_model_and_metadata(ann, conversation_id):
    before = ann.row(
        "append_message",
        conversation_id=conversation_id,
        role="assistant",
        content="sesame",
        model="gpt-x",
        metadata='{"a": 1}',
    )
    after = edit(ann, conversation_id)

    for name in ("seq", "role", "created_at", "model", "metadata", "group_seq"):
        assert after[name] == before[name]


def test_keeps_the_old_version(ann, one):
    edit(ann, one)

    revisions = ann.rows("message_revisions", conversation_id=one, seq=1)
    assert [(row["revision"], row["content"]) for row in revisions] == [
        (1, "sesame 1"),
        (2, "new"),
    ]


def test_the_same_text_is_a_revision_too(ann, one):
    assert edit(ann, one, content="sesame 1")["revision"] == 2


def test_tokens_that_are_not_given_are_estimated_anew(ann, one):
    row = edit(ann, one, content="word " * 50)

    assert row["tokens"] == ann.value("estimate_tokens", content="word " * 50)
    assert row["is_estimated"] is True


def test_moves_the_token_total(ann, one):
    edit(ann, one, tokens=9)

    row = ann.get(one)
    assert (row["message_count"], row["token_total"]) == (1, 9)


def test_is_an_activity(ann, one):
    before = ann.get(one)["updated_at"]
    ann.conn.execute("select pg_sleep(0.002)")
    edit(ann, one)

    assert ann.get(one)["updated_at"] > before


def test_takes_empty_text(ann, one):
    assert edit(ann, one, content="")["content"] == ""


@pytest.mark.parametrize(
    "content", ["🚀 עברית", "literal \\u0000", '"{}\\', "a\nb\x01"]
)
def test_text_comes_back_as_it_was(ann, one, content):
    assert edit(ann, one, content=content)["content"] == content


# Revisions


def test_the_expected_revision_is_the_current_one(ann, one):
    edit(ann, one, expected_revision=1)

    assert edit(ann, one, expected_revision=2)["revision"] == 3


@pytest.mark.parametrize("expected_revision", [0, 1, 3])
def test_another_revision_is_an_error_that_says_which(
    ann, one, fails, expected_revision
):
    edit(ann, one)

    with fails(
        "PC010",
        conversation_id=one,
        seq=1,
        expected_revision=expected_revision,
        revision=2,
    ):
        edit(ann, one, content="late", expected_revision=expected_revision)
    assert ann.live(one)[0]["content"] == "new"


# Payloads

CALL = '{"id":"a","type":"function","function":{"name":"f","arguments":"{\\"x\\": 1}"}}'
# Payloads before and after their text becomes "new".
SURGERY = {
    "text": ('{"role":"user","content":"old"}', '{"role":"user","content":"new"}'),
    "text before a call": (
        '{"role":"assistant","content":"old","tool_calls":[ ' + CALL + " ]}",
        '{"role":"assistant","content":"new","tool_calls":[ ' + CALL + " ]}",
    ),
    "text after a call": (
        '{"role":"assistant","tool_calls":[' + CALL + '],"content":"old"}',
        '{"role":"assistant","tool_calls":[' + CALL + '],"content":"new"}',
    ),
    "a tool result": (
        '{"role":"tool","content":"old","tool_call_id":"a"}',
        '{"role":"tool","content":"new","tool_call_id":"a"}',
    ),
    "numbers": (
        '{"role":"user","content":"old","n":[1.0,1e400,12345678901234567890.10,-0.0]}',
        '{"role":"user","content":"new","n":[1.0,1e400,12345678901234567890.10,-0.0]}',
    ),
    "escapes": (
        r'{"role":"user","content":"old","e":"\u0000 \ud800 \udfff \u00e9 \\u0000 \/"}',
        r'{"role":"user","content":"new","e":"\u0000 \ud800 \udfff \u00e9 \\u0000 \/"}',
    ),
    "escapes in the old text": (
        r'{"role":"user","content":"\u0000\ud800\\","e":1}',
        '{"role":"user","content":"new","e":1}',
    ),
    "private use characters": (
        '{"role":"user","content":"\ue000","e":"\ue000\ue001\ue002 \\\\ \\u0000"}',
        '{"role":"user","content":"new","e":"\ue000\ue001\ue002 \\\\ \\u0000"}',
    ),
    "escapes in a key": (
        r'{"role":"user","content":"old","\u0000\ud800":{ "\u0000" : 1 }}',
        r'{"role":"user","content":"new","\u0000\ud800":{ "\u0000" : 1 }}',
    ),
    "other escapes in a key": (
        r'{"role":"user","content":"old","\ue000 \u00e9\u5c00":"\ue000 \u0041"}',
        r'{"role":"user","content":"new","\ue000 \u00e9\u5c00":"\ue000 \u0041"}',
    ),
    "duplicate keys": (
        '{"role":"user","content":"x","content":"old","a":1,"a":2}',
        '{"role":"user","content":"new","content":"new","a":1,"a":2}',
    ),
    "a text part": (
        '{"role":"user","content":[{"type":"text","text":"old"}]}',
        '{"role":"user","content":[{"type":"text","text":"new"}]}',
    ),
    "a text part between media": (
        '{"role":"user","content":[{"type":"image_url","image_url":{ "url" : "u" }},'
        '{"type":"text","text":"old"},{"type":"file","file":{"file_id":"f"}}]}',
        '{"role":"user","content":[{"type":"image_url","image_url":{ "url" : "u" }},'
        '{"type":"text","text":"new"},{"type":"file","file":{"file_id":"f"}}]}',
    ),
    "the first of two text parts": (
        '{"role":"user","content":[{"type":"text","text":"old"},'
        '{"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"older"}]}',
        '{"role":"user","content":[{"type":"text","text":"new"},'
        '{"type":"image_url","image_url":{"url":"u"}}]}',
    ),
    "a text part with more in it": (
        '{"role":"user","content":[{"cache_control":{"type":"ephemeral"},'
        '"type":"text","text":"old"}]}',
        '{"role":"user","content":[{"cache_control":{"type":"ephemeral"},'
        '"type":"text","text":"new"}]}',
    ),
    "a refusal": (
        '{"role":"assistant","content":null,"refusal":"old"}',
        '{"role":"assistant","content":"new","refusal":null}',
    ),
    "a refusal without content": (
        '{"role":"assistant","refusal":"old"}',
        '{"role":"assistant","refusal":null,"content":"new"}',
    ),
    "a refusal part": (
        '{"role":"assistant","content":[{"type":"refusal","refusal":"old"}]}',
        '{"role":"assistant","content":[{"type":"text","text":"new"}]}',
    ),
}


@pytest.mark.parametrize(("before", "after"), SURGERY.values(), ids=SURGERY)
def test_replaces_the_text_in_the_payload_and_nothing_else(
    ann, conversation_id, before, after
):
    ann.append(conversation_id, before)
    row = edit(ann, conversation_id)

    assert row["payload"] == after
    assert row["content"] == "new"


@pytest.mark.parametrize(("before", "after"), SURGERY.values(), ids=SURGERY)
def test_the_old_payload_stays_as_a_revision(ann, conversation_id, before, after):
    ann.append(conversation_id, before)
    edit(ann, conversation_id)

    rows = ann.rows("message_revisions", conversation_id=conversation_id, seq=1)
    assert [row["payload"] for row in rows] == [before, after]


@pytest.mark.parametrize(
    "before",
    [
        r'{"role":"user","c\u006fntent":"old"}',
        r'{"role":"user","content":[{"t\u0079pe":"text","text":"old"}]}',
        r'{"role":"user","content":[{"type":"t\u0065xt","text":"old"}]}',
        r'{"role":"user","content":[{"type":"text","t\u0065xt":"old"}]}',
    ],
)
def test_names_that_are_written_with_escapes_are_the_same_names(
    ann, conversation_id, before
):
    ann.append(conversation_id, before)
    row = edit(ann, conversation_id)

    assert "old" not in row["payload"]
    assert json.loads(row["payload"])["content"] in (
        "new",
        [{"type": "text", "text": "new"}],
    )


def test_the_new_payload_is_what_an_append_of_it_would_store(ann, conversation_id):
    ann.append(
        conversation_id, '{"role":"user","content":[{"type":"text","text":"a"}]}'
    )
    edited = edit(ann, conversation_id, content='quote " \\ \n 🚀')
    (appended,) = ann.append(conversation_id, edited["payload"])

    for name in ("role", "content", "tokens", "payload"):
        assert appended[name] == edited[name]


def test_an_edited_call_keeps_its_group_and_takes_its_result(ann, conversation_id):
    ann.append(
        conversation_id,
        '{"role":"assistant","content":"x","tool_calls":[' + CALL + "]}",
    )
    edit(ann, conversation_id)
    (row,) = ann.append(
        conversation_id, {"role": "tool", "tool_call_id": "a", "content": "x"}
    )

    assert row["group_seq"] == 1


@pytest.mark.parametrize("message", ['"content":null,', ""])
def test_a_message_without_text_can_not_be_edited(ann, conversation_id, fails, message):
    ann.append(
        conversation_id,
        '{"role":"assistant",' + message + '"tool_calls":[' + CALL + "]}",
    )

    with fails("22023", argument="seq", value=1):
        edit(ann, conversation_id)


TEXTS = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
PARTS = st.fixed_dictionaries(
    {"type": st.just("text"), "text": st.text(max_size=10)}
) | (
    st.fixed_dictionaries(
        {
            "type": st.just("image_url"),
            "image_url": st.fixed_dictionaries({"url": st.just("x:y"), "more": VALUES}),
        }
    )
)
CONTENTS = st.text(max_size=20) | st.lists(PARTS, min_size=1, max_size=4).filter(
    lambda parts: any(part["type"] == "text" for part in parts)
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    content=CONTENTS,
    more=st.dictionaries(st.text(min_size=1, max_size=5), VALUES, max_size=3),
    new=TEXTS,
    ascii_only=st.booleans(),
)
def test_any_payload_changes_in_its_text_alone(
    ann, conversation_id, content, more, new, ascii_only
):
    more = {"x" + name: value for name, value in more.items()}
    message = {**more, "role": "user", "content": content}
    text = json.dumps(message, ensure_ascii=ascii_only)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair can only be escaped
        text = json.dumps(message)
    if not ascii_only and "\0" in text:
        return
    (stored,) = ann.append(conversation_id, text)
    edited = edit(ann, conversation_id, stored["seq"], new)

    assert stored["payload"] == text
    assert edited["content"] == new
    after = json.loads(edited["payload"])
    if isinstance(content, list):
        others = [part for part in content if part["type"] != "text"]
        assert [part for part in after["content"] if part["type"] != "text"] == others
        (changed,) = [part for part in after["content"] if part["type"] == "text"]
        assert changed == {"type": "text", "text": new}
        after["content"] = content
    else:
        assert after["content"] == new
        after["content"] = content
    assert after == message
    assert list(after) == list(message)


# What is refused


def test_refuses_no_text(ann, one, fails):
    with fails("22023", argument="content"):
        edit(ann, one, content=None)


def test_refuses_negative_tokens(ann, one, fails):
    with fails("22023", argument="tokens"):
        edit(ann, one, tokens=-1)


@pytest.mark.parametrize("seq", [0, -1, 2, None])
def test_a_seq_that_is_not_there_is_an_error(ann, one, fails, seq):
    with fails("PC002", conversation_id=one, seq=seq):
        edit(ann, one, seq)


def test_a_deleted_message_is_an_error(ann, one, fails):
    ann.row("delete_message", conversation_id=one, seq=1)

    with fails("PC002", conversation_id=one, seq=1):
        edit(ann, one)


def test_a_held_conversation_can_be_edited(ann, service, one):
    service.row("hold_conversation", conversation_id=one, reason="case 7")

    assert edit(ann, one)["revision"] == 2


def test_the_service_edits_for_the_owner(service, ann, one):
    edit(service, one)

    assert ann.live(one)[0]["content"] == "new"


def test_an_unknown_id_is_an_error(ann, fails):
    with fails("PC001"):
        edit(ann, uuid4())


def test_a_deleted_conversation_is_an_error(ann, one, fails):
    ann.value("delete_conversation", conversation_id=one)

    with fails("PC012"):
        edit(ann, one)


def test_outsiders_find_nothing_and_change_nothing(outsider, ann, one, fails):
    before = ann.live(one)
    with fails("PC001", conversation_id=one):
        edit(outsider, one)
    assert ann.live(one) == before


def test_needs_a_context(unknown, one, fails):
    with fails("PC030"):
        edit(unknown, one)
