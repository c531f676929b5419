"""Whatever broke in a conversation, each provider would take its context.

Histories are generated, in one format or mixed, and rendered to all four.
"""

from __future__ import annotations

import json

import psycopg
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from . import (
    validate_anthropic,
    validate_gemini,
    validate_openai,
    validate_openai_responses,
)
from .conftest import Chat
from .providers import FORMATS, assistant, results, said, user

PROBLEMS = {
    "openai": validate_openai.problems,
    "openai_responses": validate_openai_responses.problems,
    "anthropic": validate_anthropic.problems,
    "gemini": validate_gemini.problems,
}
texts = st.sampled_from(
    [
        "hello",
        "a\nb",
        " padded ",
        "",
        "  ",
        "שלום 👩‍👩‍👧",
        '{"a": 1}',
        "\\u0000",
        "\u00a0",
    ]
)
ids = st.sampled_from(["a", "b", "call_2_1", "toolu_x", "functions.f:0", "ü"])
names = st.sampled_from(["f", "g"])
arguments = st.sampled_from(
    ["{}", "", '{"x": 12345678901234567890123}', "[1]", "not json", '{"b":1,"a":"é"}']
)
calls = st.lists(
    st.tuples(ids, names, arguments), min_size=1, max_size=3, unique_by=lambda c: c[0]
)
# How the results of a turn come in: all, or with something wrong.
defects = st.sampled_from(["", "", "", "open", "orphan", "twice", "reversed", "partly"])
formats = st.sampled_from(FORMATS)
roles = st.sampled_from(["user", "assistant", "system"])
turns = st.one_of(
    st.tuples(st.just("user"), formats, texts, st.booleans()),
    st.tuples(st.just("assistant"), formats, texts),
    st.tuples(
        st.just("plain"), st.sampled_from(["user", "assistant", "system"]), texts
    ),
    st.tuples(st.just("reasoning"), texts),
    st.tuples(
        st.just("calls"), formats, formats, texts, calls, defects, texts, st.booleans()
    ),
)
changes = st.lists(
    st.tuples(
        st.sampled_from(["delete_message", "edit_message", "save_summary"]),
        st.integers(1, 12),
    ),
    max_size=3,
)


def play(chat: Chat, turn: tuple) -> None:
    """Append what happens in a turn."""
    if turn[0] == "user":
        chat.append(turn[1], user(*turn[1:]))
    elif turn[0] == "assistant" and turn[2]:
        chat.append(turn[1], *assistant(turn[1], turn[2], []))
    elif turn[0] == "plain":
        chat.say(turn[1], turn[2])
    elif turn[0] == "reasoning":
        chat.append(
            "openai_responses", {"type": "reasoning", "id": "rs_1", "summary": []}
        )
        if turn[1]:
            chat.append("openai_responses", *assistant("openai_responses", turn[1], []))
    elif turn[0] == "calls":
        _, call_format, result_format, text, found, defect, after, is_error = turn
        chat.append(call_format, *assistant(call_format, text, found))
        answers = [(id, name, f"{text}{name}", is_error) for id, name, _ in found]
        answers = {
            "": answers,
            "open": [],
            "orphan": [*answers, ("z", "f", "nobody asked", False)],
            "twice": [*answers, answers[0]],
            "reversed": answers[::-1],
            "partly": answers[1:],
        }[defect]
        if answers:
            chat.append(result_format, *results(result_format, answers, after))


def change(chat: Chat, function: str, seq: int) -> None:
    """Change something in the history, if that can be."""
    try:
        if function == "save_summary":
            chat.on(function, content="so far", through_seq=seq, previous_through_seq=0)
        elif function == "edit_message":
            chat.on(function, seq=seq, content="edited")
        else:
            chat.on(function, seq=seq)
    except psycopg.Error as error:
        assert error.sqlstate in ("PC002", "PC010", "22023"), error


def kept_payloads(chat: Chat, **options: str) -> list[str]:
    """Return the bytes of the OpenAI messages in a context."""
    items = chat.rows("get_context", **options)
    seqs = [item["seq"] for item in items if item["kind"] != "summary"]
    return [
        row["payload"]
        for row in chat.rows("last_messages", message_limit=100)
        if row["format"] == "openai" and row["seq"] in seqs
    ]


@pytest.fixture
def policies(connect):
    """Policies that leave less out than the usual one does."""
    service = connect("test_service", "acme")
    service.execute("select convo.set_policy('any start', start_on_user => false)")
    service.execute(
        "select convo.set_policy('in system', summary_placement => 'system')"
    )
    service.execute("select convo.set_policy('open', open_calls => 'keep')")
    service.execute("select convo.set_policy('short', token_budget => 60)")


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.one_of(st.none(), formats),
    st.lists(turns, min_size=1, max_size=6),
    changes,
    st.sampled_from(["default", "any start", "in system", "open", "short"]),
)
def test_every_provider_takes_any_history(
    app, policies, one_format, history, changed, policy
):
    chat = Chat(app, system_prompt="Be brief.")
    for turn in history:
        if one_format and turn[0] == "calls":
            turn = ("calls", one_format, one_format, *turn[3:])
        elif one_format and turn[0] in ("user", "assistant"):
            turn = (turn[0], one_format, *turn[2:])
        if policy == "open" and turn[0] == "calls":
            turn = (*turn[:6], "", turn[7])  # nothing after an open call
        play(chat, turn)
    for function, seq in changed:
        change(chat, function, seq)
    options = {} if policy == "default" else {"policy": policy}
    try:
        rendered = {f: chat.render(f, **options) for f in FORMATS}
    except psycopg.Error as error:
        assert error.sqlstate == "PC020", error
        event("nothing to send")
        return

    problems = {
        f: PROBLEMS[f](request, may_be_open=policy == "open")
        for f, request in rendered.items()
    }
    assert problems == {format: [] for format in FORMATS}, rendered
    # All four say the same.
    first = said("openai", rendered["openai"])
    for format in FORMATS[1:]:
        other = said(format, rendered[format])
        assert other.system == first.system
        assert other.images == first.images
        assert [(r, t.rstrip()) for r, t in other.texts] == [
            (r, t.rstrip()) for r, t in first.texts
        ]
        if policy != "open":  # Gemini can't say which of two calls is still open.
            assert sorted(map(json.dumps, other.calls)) == sorted(
                map(json.dumps, first.calls)
            )
    if one_format == "openai":
        text = chat.text("openai", **options)
        for payload in kept_payloads(chat, **options):
            assert payload in text
