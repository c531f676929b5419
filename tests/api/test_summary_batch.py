"""summary_batch: the oldest messages after the last summary that are done."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from .test_get_context import ASSISTANT, EMPTY, USER, calls, result


def batch(who, conversation_id, **options):
    """The batch with its messages read, or None."""
    rows = who.rows("summary_batch", conversation_id=conversation_id, **options)
    assert len(rows) <= 1
    for row in rows:
        row["messages"] = json.loads(row["messages"])
    return rows[0] if rows else None


def seqs(found):
    return [message["seq"] for message in found["messages"]]


def test_gives_the_oldest_messages(ann, conversation_id):
    ann.say(conversation_id, 1, 2, 4, 8)

    assert batch(ann, conversation_id, message_limit=2) == {
        "previous_summary": None,
        "previous_through_seq": 0,
        "through_seq": 2,
        "messages": [
            {"seq": 1, "role": "user", "content": "sesame 1"},
            {"seq": 2, "role": "user", "content": "sesame 2"},
        ],
        "tokens": 3,
    }


def test_goes_on_after_the_last_summary(ann, conversation_id):
    ann.say(conversation_id, 1, 2, 4, 8)
    ann.summarise(conversation_id, 1)

    found = batch(ann, conversation_id)

    assert (found["previous_summary"], found["previous_through_seq"]) == (
        "sesame summary", 1,
    )  # fmt: skip
    assert (seqs(found), found["through_seq"]) == ([2, 3], 3)


def test_batches_and_summaries_go_through_a_conversation(ann, conversation_id):
    """Each message once, up to the newest user message."""
    ann.append(conversation_id, [USER, calls("a"), result("a"), ASSISTANT] * 5 + [USER])
    told, previous = [], 0

    while found := batch(ann, conversation_id, message_limit=3):
        told += seqs(found)
        ann.summarise(conversation_id, found["through_seq"], previous)
        previous = found["through_seq"]

    assert told == list(range(1, 21))


def test_the_newest_user_turn_stays(ann, conversation_id):
    ann.append(
        conversation_id,
        [USER, ASSISTANT, USER, calls("a"), result("a"), {**EMPTY, "role": "user"}],
    )

    assert batch(ann, conversation_id)["through_seq"] == 2


def test_without_a_user_message_the_newest_stays(ann, conversation_id):
    ann.say(conversation_id, 1, 2, 4, role="assistant")

    assert seqs(batch(ann, conversation_id)) == [1, 2]


def test_a_group_is_never_split(ann, conversation_id):
    ann.append(
        conversation_id,
        [USER, calls("a", "b"), result("a"), result("b"), USER, USER],
    )

    assert seqs(batch(ann, conversation_id, message_limit=3)) == [1]
    ann.summarise(conversation_id, 1)
    assert seqs(batch(ann, conversation_id, message_limit=1)) == [2, 3, 4]


def test_a_late_result_comes_with_its_call(ann, conversation_id):
    ann.append(conversation_id, [calls("a"), USER, result("a"), USER])

    found = batch(ann, conversation_id)

    assert (seqs(found), found["through_seq"]) == ([1, 3, 2], 2)


def test_it_ends_before_an_open_call(ann, conversation_id):
    ann.append(conversation_id, [USER, calls("a", "b"), result("a"), USER, USER])

    assert seqs(batch(ann, conversation_id)) == [1]
    ann.append(conversation_id, [result("b")])
    assert seqs(batch(ann, conversation_id)) == [1, 2, 3, 6, 4]


def test_a_call_is_given_up_after_ten_user_messages(ann, conversation_id):
    """Else it would block its conversation for ever."""
    ann.append(conversation_id, [calls("a"), *[USER] * 9])
    assert batch(ann, conversation_id) is None

    ann.append(conversation_id, [USER])

    found = batch(ann, conversation_id)
    assert seqs(found) == list(range(2, 11))
    ann.summarise(conversation_id, found["through_seq"])


def test_save_summary_takes_exactly_that(ann, conversation_id, fails):
    ann.append(conversation_id, [calls("a"), *[USER] * 9])
    with fails("22023", reason="a call without its result would be covered"):
        ann.summarise(conversation_id, 5)


def test_what_no_context_would_hold_is_left_out(ann, conversation_id):
    ann.append(conversation_id, [EMPTY, USER, result("x"), ASSISTANT, EMPTY, USER])
    ann.row("delete_message", conversation_id=conversation_id, seq=4)
    ann.say(conversation_id, 1, role="system")

    found = batch(ann, conversation_id)

    assert (seqs(found), found["through_seq"]) == ([2], 5)


def test_nothing_to_summarise(ann, conversation_id):
    assert batch(ann, conversation_id) is None
    ann.say(conversation_id, 1)
    assert batch(ann, conversation_id) is None
    ann.say(conversation_id, 1)
    assert batch(ann, conversation_id, message_limit=0) is None


def test_calls_and_results_are_readable(ann, conversation_id):
    ann.append(
        conversation_id,
        [
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
            ]},
            {"role": "assistant", "content": "I will.", "tool_calls": [
                {"id": "a", "type": "function",
                 "function": {"name": "f", "arguments": '{"x": 1}'}},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "one \u0000 two"},
            USER,
        ],
    )  # fmt: skip

    assert batch(ann, conversation_id)["messages"] == [
        {"seq": 1, "role": "user", "content": "look\n[image]"},
        {
            "seq": 2, "role": "assistant", "content": "I will.",
            "calls": [{"name": "f", "arguments": '{"x": 1}'}],
        },
        {"seq": 3, "role": "tool", "results": [{"content": "one \ufffd two"}]},
    ]  # fmt: skip


def test_a_result_of_another_format(ann, conversation_id):
    ann.append(
        conversation_id,
        [
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {"type": "text", "text": "and now?"}]},
            {"role": "user", "content": "next"},
        ],
        format="anthropic",
    )  # fmt: skip

    assert batch(ann, conversation_id)["messages"] == [
        {"seq": 1, "role": "assistant", "calls": [
            {"name": "f", "arguments": '{"x": 1}'}]},
        {"seq": 2, "role": "tool", "content": "and now?",
         "results": [{"content": "one"}]},
    ]  # fmt: skip


@pytest.mark.parametrize("message_limit", [None, -1])
def test_sizes_that_make_no_sense(ann, conversation_id, message_limit, fails):
    with fails("22023", argument="message_limit"):
        batch(ann, conversation_id, message_limit=message_limit)


def test_a_limit_over_the_most_is_the_most(ann, conversation_id):
    ann.append(conversation_id, [USER] * 1002)

    assert len(batch(ann, conversation_id, message_limit=2000)["messages"]) == 1000


@pytest.mark.parametrize("who", ["ann", "service", "reader"])
def test_owner_service_and_reader_may(request, ann, conversation_id, who):
    ann.say(conversation_id, 1, 2)
    assert seqs(batch(request.getfixturevalue(who), conversation_id)) == [1]


def test_of_others_it_is_not_found(outsider, conversation_id, fails):
    for missing in (conversation_id, uuid4()):
        with fails("PC001", conversation_id=missing):
            batch(outsider, missing)
