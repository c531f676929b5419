"""After any sequence of operations the counters, orders, groups and windows hold.

The expectations come from a model in Python that is written from the contract alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

SETTINGS = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
# Few ids, so that they come again.
CALL_IDS = st.sampled_from("ab")
TOKENS = st.integers(0, 50)


@dataclass
class Message:
    """What a stored message must be."""

    seq: int
    role: str
    tokens: int
    group_seq: int
    call_ids: list[str] = field(default_factory=list)
    result_id: str | None = None
    text: bool = True
    revision: int = 1
    is_deleted: bool = False


@dataclass
class Conversation:
    """What a conversation must be."""

    conversation_id: UUID
    messages: list[Message] = field(default_factory=list)

    @property
    def live(self) -> list[Message]:
        return [message for message in self.messages if not message.is_deleted]

    @property
    def body(self) -> list[Message]:
        return [message for message in self.live if message.role != "system"]

    def add(self, role: str, tokens: int, **more) -> None:
        """Add a message; a result joins the nearest open call before it."""
        message = Message(len(self.messages) + 1, role, tokens, 0, **more)
        message.group_seq = message.seq
        for call in reversed(self.live):
            answered = [
                other.result_id
                for other in self.live
                if other.group_seq == call.group_seq and other.result_id
            ]
            wanted = message.result_id
            if wanted and call.call_ids.count(wanted) > answered.count(wanted):
                message.group_seq = call.group_seq
                break
        self.messages.append(message)

    def window(self, budget: int) -> list[tuple[int, int]]:
        """The newest groups whose tokens fit, as (seq, running_tokens)."""
        kept: list[tuple[int, int]] = []
        total = 0
        for group_seq in sorted({m.group_seq for m in self.body}, reverse=True):
            group = [m for m in self.body if m.group_seq == group_seq]
            total += sum(m.tokens for m in group)
            if total > budget:
                break
            kept = [(m.seq, total) for m in group] + kept
        return kept


def openai(role: str, call_ids: list[str], result_id: str | None, text: bool) -> dict:
    message: dict = {"role": role, "content": "text" if text else None}
    if call_ids:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}}
            for i in call_ids
        ]
    if result_id:
        message["tool_call_id"] = result_id
    return message


# A role, tokens, call ids, a result id, whether there is text.
PLAIN = st.tuples(
    st.sampled_from(["system", "user", "assistant"]),
    TOKENS,
    st.just([]),
    st.none(),
    st.just(True),
)
CALLS = st.tuples(
    st.just("assistant"),
    TOKENS,
    st.lists(CALL_IDS, min_size=1, max_size=3),
    st.none(),
    st.booleans(),
)
RESULT = st.tuples(st.just("tool"), TOKENS, st.just([]), CALL_IDS, st.just(True))
BATCHES = (
    st.lists(CALLS, min_size=1, max_size=2)
    | st.lists(RESULT, min_size=1, max_size=3)
    | st.lists(PLAIN | CALLS | RESULT, max_size=6)
)


class Operations(RuleBasedStateMachine):
    """One user's conversations under random operations."""

    conn: psycopg.Connection
    conversations = Bundle("conversations")

    def __init__(self) -> None:
        super().__init__()
        self.touched: Conversation | None = None

    def call(self, function: str, *values) -> list[tuple]:
        places = ", ".join(["%s"] * len(values))
        return self.conn.execute(
            f"select * from convo.{function}({places})", values
        ).fetchall()

    @rule(target=conversations)
    def create(self) -> Conversation:
        ((conversation_id,),) = self.call("create_conversation")
        self.touched = Conversation(conversation_id)
        return self.touched

    @rule(
        to=conversations,
        role=st.sampled_from(["system", "user", "assistant"]),
        tokens=TOKENS,
    )
    def append_message(self, to: Conversation, role: str, tokens: int) -> None:
        self.call("append_message", to.conversation_id, role, "text", tokens)
        to.add(role, tokens)
        self.touched = to

    @rule(to=conversations, batch=BATCHES)
    def append_messages(self, to: Conversation, batch: list) -> None:
        expected_seq = len(to.messages)
        text = json.dumps([openai(r, c, i, t) for r, _, c, i, t in batch])
        tokens = [turn[1] for turn in batch]
        self.conn.execute(
            "select convo.append_messages(%s, %s, tokens => %s::integer[],"
            " expected_seq => %s)",
            [to.conversation_id, text, tokens, expected_seq],
        )
        for role, count, call_ids, result_id, has_text in batch:
            to.add(role, count, call_ids=call_ids, result_id=result_id, text=has_text)
        self.touched = to

    @rule(of=conversations, data=st.data(), tokens=TOKENS)
    def edit_message(self, of: Conversation, data, tokens: int) -> None:
        if texts := [message for message in of.live if message.text]:
            message = data.draw(st.sampled_from(texts))
            self.conn.execute(
                "select convo.edit_message(%s, %s, 'other', %s, %s)",
                [of.conversation_id, message.seq, tokens, message.revision],
            )
            message.tokens = tokens
            message.revision += 1
            self.touched = of

    @rule(of=conversations, data=st.data(), is_deleted=st.booleans())
    def delete_or_restore(self, of: Conversation, data, is_deleted: bool) -> None:
        if of.messages:
            message = data.draw(st.sampled_from(of.messages))
            function = "delete_message" if is_deleted else "restore_message"
            self.call(function, of.conversation_id, message.seq)
            message.is_deleted = is_deleted
            self.touched = of

    @rule(of=conversations, back=st.integers(0, 5))
    def delete_messages(self, of: Conversation, back: int) -> None:
        from_seq = max(1, len(of.messages) - back)
        gone = [message for message in of.live if message.seq >= from_seq]
        assert self.call("delete_messages", of.conversation_id, from_seq) == [
            (len(gone),)
        ]
        for message in gone:
            message.is_deleted = True
        self.touched = of

    @rule(target=conversations, of=conversations, data=st.data())
    def fork(self, of: Conversation, data) -> Conversation:
        through_seq = data.draw(st.integers(0, len(of.messages)))
        ((conversation_id,),) = self.call(
            "fork_conversation", of.conversation_id, through_seq
        )
        copied = [replace(message) for message in of.messages[:through_seq]]
        self.touched = Conversation(conversation_id, copied)
        return self.touched

    @rule(of=consumes(conversations))
    def delete_conversation(self, of: Conversation) -> None:
        assert self.call("delete_conversation", of.conversation_id) == [(True,)]
        assert self.call("get_conversation", of.conversation_id) == []
        self.touched = None

    @precondition(lambda self: self.touched)
    @invariant()
    def counters_equal_what_they_count(self) -> None:
        of = self.touched
        row = self.conn.execute(
            "select last_seq, message_count, token_total, body_count, body_tokens"
            " from convo.conversation where conversation_id = %s",
            [of.conversation_id],
        ).fetchone()

        assert row == (
            len(of.messages),
            len(of.live),
            sum(message.tokens for message in of.live),
            len(of.body),
            sum(message.tokens for message in of.body),
        )

    @precondition(lambda self: self.touched)
    @invariant()
    def rows_are_what_was_said_in_order(self) -> None:
        of = self.touched
        rows = self.conn.execute(
            "select seq, role, tokens, group_seq, revision, deleted_at is not null,"
            " created_at from convo.message where conversation_id = %s order by seq",
            [of.conversation_id],
        ).fetchall()

        assert [row[:-1] for row in rows] == [
            (m.seq, m.role, m.tokens, m.group_seq, m.revision, m.is_deleted)
            for m in of.messages
        ]
        times = [row[-1] for row in rows]
        assert times == sorted(times)

    @precondition(lambda self: self.touched)
    @invariant()
    def windows_equal_the_reference(self) -> None:
        of = self.touched
        total = sum(message.tokens for message in of.body)
        for budget in {0, 1, total // 3, total // 2, max(total - 1, 0), total}:
            rows = self.call("token_window", of.conversation_id, budget)
            expected = of.window(budget)
            assert [(row[0], row[4]) for row in rows] == expected, budget
        for limit in (1, 3, 100):
            rows = self.call("last_messages", of.conversation_id, limit)
            assert [row[0] for row in rows] == [m.seq for m in of.live][-limit:]


@pytest.fixture
def machine(
    connect: Callable[..., psycopg.Connection],
) -> Iterator[type[RuleBasedStateMachine]]:
    """The operations, on a connection of one user."""

    class Connected(Operations):
        conn = connect("test_app", "acme", "ann")

    return Connected


def test_any_sequence_of_operations_keeps_what_must_hold(machine):
    run_state_machine_as_test(machine, settings=SETTINGS)
