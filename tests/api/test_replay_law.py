"""Whatever happens to a conversation, its requests replay to the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    rule,
    run_state_machine_as_test,
)

SETTINGS = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
FORMATS = st.sampled_from(["openai", "openai_responses", "anthropic", "gemini"])
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
# What text can't hold, escaped in a payload as a provider sends it.
ODD_TEXTS = TEXTS | st.sampled_from(["\0", "\ud800", "\\u0000", '"', "\\"])
PARAMETERS = st.none() | st.fixed_dictionaries(
    {}, optional={"stop": ODD_TEXTS, "tools": st.lists(ODD_TEXTS, max_size=2)}
)
POLICIES = st.sampled_from(
    [
        "'a', 'summary'",
        "'a', 'full'",
        "'a', 'last_n', message_limit => 3",
        "'a', 'token_budget', 60",
        "'a', 'summary', summary_placement => 'system', open_calls => 'keep'",
        "'a', 'token_budget', 80, step_tokens => 20, start_on_user => false",
    ]
)


class Operations(RuleBasedStateMachine):
    """One user's conversations, and the bodies of the requests that were prepared."""

    conn: psycopg.Connection
    service: psycopg.Connection
    conversations = Bundle("conversations")

    def __init__(self) -> None:
        super().__init__()
        self.bodies: dict[UUID, dict[UUID, str]] = {}

    def attempt(self, query: str, *values) -> list[tuple]:
        """Run a call; one that is refused changes nothing, which is fine here."""
        try:
            return self.conn.execute(query, values).fetchall()
        except psycopg.Error as error:
            assert (error.sqlstate or "").startswith("PC") or error.sqlstate == "22023"
            return []

    @rule(target=conversations, prompt=TEXTS)
    def create(self, prompt: str) -> UUID:
        ((made,),) = self.attempt("select convo.create_conversation(null, %s)", prompt)
        self.attempt("select convo.append_message(%s, 'user', 'Hi', 10)", made)
        self.bodies[made] = {}
        return made

    @rule(to=conversations, role=st.sampled_from(["system", "user", "assistant"]),
          text=TEXTS)  # fmt: skip
    def append_message(self, to: UUID, role: str, text: str) -> None:
        self.attempt("select convo.append_message(%s, %s, %s, 10)", to, role, text)

    @rule(to=conversations, text=ODD_TEXTS, is_answered=st.booleans())
    def append_calls(self, to: UUID, text: str, is_answered: bool) -> None:
        function = {"name": "f", "arguments": json.dumps({"x": text})}
        call = {"id": "c", "type": "function", "function": function}
        batch = [{"role": "assistant", "content": text, "tool_calls": [call]}]
        if is_answered:
            batch.append({"role": "tool", "tool_call_id": "c", "content": text})
        self.attempt("select convo.append_messages(%s, %s)", to, json.dumps(batch))

    @rule(of=conversations, seq=st.integers(1, 8), text=TEXTS)
    def edit(self, of: UUID, seq: int, text: str) -> None:
        self.attempt("select convo.edit_message(%s, %s, %s)", of, seq, text)

    @rule(of=conversations, seq=st.integers(1, 8),
          function=st.sampled_from(
              ["delete_message", "restore_message", "delete_messages"]))  # fmt: skip
    def delete_or_restore(self, of: UUID, seq: int, function: str) -> None:
        self.attempt(f"select convo.{function}(%s, %s)", of, seq)

    @rule(of=conversations, seq=st.integers(1, 8), text=TEXTS)
    def summarise(self, of: UUID, seq: int, text: str) -> None:
        self.attempt(
            "select convo.save_summary(%s, %s, %s, c.summary_through_seq)"
            " from convo.conversation as c where c.conversation_id = %s",
            of, text, seq, of,
        )  # fmt: skip

    @rule(of=conversations, prompt=TEXTS)
    def change_prompt(self, of: UUID, prompt: str) -> None:
        self.attempt("select convo.update_conversation(%s, null, %s)", of, prompt)

    @rule(key=st.sampled_from("ab"), value=ODD_TEXTS)
    def remember(self, key: str, value: str) -> None:
        fact = json.dumps([{"key": key, "value": value}])
        self.attempt("select convo.remember(%s)", fact)

    @rule(key=st.sampled_from("ab"))
    def forget(self, key: str) -> None:
        self.attempt("select convo.forget(%s)", key)

    @rule(policy=POLICIES)
    def change_policy(self, policy: str) -> None:
        self.service.execute(f"select convo.set_policy({policy})")

    @rule(target=conversations, of=conversations)
    def fork(self, of: UUID) -> UUID:
        ((made,),) = self.attempt("select convo.fork_conversation(%s)", of)
        self.bodies[made] = {}
        return made

    @rule(of=consumes(conversations))
    def delete_conversation(self, of: UUID) -> None:
        self.attempt("select convo.delete_conversation(%s)", of)
        for request_id in self.bodies.pop(of):
            assert self.attempt("select convo.replay_request(%s)", request_id) == []

    @rule(of=conversations, format=FORMATS, parameters=PARAMETERS,
          policy=st.sampled_from([None, "a"]))  # fmt: skip
    def prepare(self, of: UUID, format: str, parameters, policy) -> None:
        rows = self.attempt(
            "select request_id, body"
            " from convo.prepare_request(%s, %s, 'm', %s, null, %s)",
            of, format, policy,
            None if parameters is None else json.dumps(parameters),
        )  # fmt: skip
        self.bodies[of] |= dict(rows)

    @rule(of=conversations, text=ODD_TEXTS)
    def complete(self, of: UUID, text: str) -> None:
        for request_id in list(self.bodies[of])[-1:]:
            message = {"role": "assistant", "content": text}
            response = {"choices": [{"message": message, "finish_reason": "stop"}]}
            self.attempt(
                "select convo.complete_request(%s, %s)",
                request_id, json.dumps(response),
            )  # fmt: skip

    def teardown(self) -> None:
        for bodies in self.bodies.values():
            for request_id, body in bodies.items():
                ((again,),) = self.conn.execute(
                    "select convo.replay_request(%s)", (request_id,)
                ).fetchall()
                assert again == body


@pytest.fixture
def machine(
    connect: Callable[..., psycopg.Connection],
) -> Iterator[type[RuleBasedStateMachine]]:
    """The operations, on connections of one user and of a worker."""

    class Connected(Operations):
        conn = connect("test_app", "acme", "ann")
        service = connect("test_service", "acme")

    Connected.service.execute("select convo.set_policy('a')")
    return Connected


def test_each_request_replays_to_the_same_bytes(machine):
    run_state_machine_as_test(machine, settings=SETTINGS)
