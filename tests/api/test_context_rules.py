"""Whatever broke in a conversation, its context is what the rules say it is.

The rules are those of context_rules.py; histories are generated: open calls, results
without calls or twice, messages that say nothing, system messages in the middle,
deletions, edits, restored messages, and summaries.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .context_rules import (
    Conversation,
    Message,
    NoRoom,
    Policy,
    body,
    context,
    may_summarise,
    summary_batch,
)

SETTINGS = settings(
    max_examples=250, deadline=None, suppress_health_check=list(HealthCheck)
)
TOKENS = st.integers(0, 40)
# Few ids, so that they come again.
CALL_IDS = st.sampled_from("abc")
PLACE = st.integers(0, 30)


@st.composite
def batches(draw) -> tuple[str, list[dict[str, Any]], list[int]]:
    """Messages of the OpenAI format, sound or not."""
    kinds = draw(st.lists(st.sampled_from("uuasctttx"), min_size=1, max_size=6))
    messages: list[dict[str, Any]] = []
    for kind in kinds:
        text = draw(st.sampled_from(["text", "text", "text", "", " \n"]))
        if kind == "t":
            call_id = draw(CALL_IDS)
            messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
        elif kind in "cx":
            ids = draw(st.lists(CALL_IDS, min_size=1, max_size=3))
            function = {"name": "f", "arguments": "{}"}
            calls = [{"id": i, "type": "function", "function": function} for i in ids]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            if kind == "x":  # all answered, as most are
                messages += [
                    {"role": "tool", "tool_call_id": i, "content": text} for i in ids
                ]
        else:
            role = {"u": "user", "a": "assistant", "s": "system"}[kind]
            messages.append({"role": role, "content": text})
    return "append", messages, [draw(TOKENS) for _ in messages]


STRATEGIES = ["full", "last_n", "token_budget", "summary", "hybrid"]
CHANGES = st.one_of(
    batches(),
    batches(),
    st.tuples(st.just("say"), st.sampled_from(["system", "user", "assistant"]), TOKENS),
    st.tuples(st.just("delete"), PLACE, st.none()),
    st.tuples(st.just("restore"), PLACE, st.none()),
    st.tuples(st.just("edit"), PLACE, TOKENS),
    st.tuples(st.just("summarise"), PLACE, TOKENS),
)


@st.composite
def policies(draw, strategies=STRATEGIES, most=400) -> Policy:
    """Any policy; budgets around the size of the conversations."""
    budget = draw(st.integers(1, most))
    return Policy(
        strategy=draw(st.sampled_from(strategies)),
        token_budget=budget,
        message_limit=draw(st.integers(1, 8)),
        step_tokens=draw(st.one_of(st.just(0), st.integers(0, budget // 2))),
        message_overhead=draw(st.integers(0, 4)),
        start_on_user=draw(st.booleans()),
        pin_last_user=draw(st.booleans()),
        open_calls=draw(st.sampled_from(["drop", "keep"])),
        summary_placement=draw(st.sampled_from(["exchange", "system"])),
        memory_limit=draw(st.integers(0, 4)),
        recall_limit=draw(st.sampled_from([0, 3, 3])),
    )


def read(db: psycopg.Connection, conversation_id: Any) -> Conversation:
    """The stored conversation, straight from the tables."""
    rows = db.execute(
        "select seq, group_seq, role, tokens, coalesce(content, ''),"
        " coalesce(call_ids, '{}'), coalesce(result_ids, '{}'),"
        " deleted_at is not null"
        " from convo.message where conversation_id = %s order by seq",
        [conversation_id],
    )
    messages = [
        Message(
            seq, group, role, tokens, bool(text.strip() or calls or results),
            calls, results, deleted,
        )
        for seq, group, role, tokens, text, calls, results, deleted in rows
    ]  # fmt: skip
    summaries = db.execute(
        "select through_seq, tokens from convo.summary where conversation_id = %s",
        [conversation_id],
    )
    prompt = db.execute(
        "select p.tokens from convo.prompt as p"
        " join convo.conversation as c on p.sha256 = c.system_prompt_sha256"
        " and (p.tenant_id, p.user_id) = (c.tenant_id, c.user_id)"
        " where c.conversation_id = %s",
        [conversation_id],
    ).fetchone()
    return Conversation(messages, prompt[0] if prompt else None, dict(summaries))


def change(ann, db, conversation_id, kind, *what) -> None:
    """Make one change through the functions, as far as it is possible."""
    place = {"conversation_id": conversation_id}
    if kind == "append":
        messages, tokens = what
        ann.append(conversation_id, messages, tokens=tokens)
        return
    if kind == "say":
        role, tokens = what
        ann.row("append_message", **place, role=role, content="text", tokens=tokens)
        return
    stored = read(db, conversation_id)
    if not stored.messages:
        return
    number, tokens = what
    message = stored.messages[number % len(stored.messages)]
    if kind == "summarise":
        save_summary(ann, stored, conversation_id, message.seq, tokens)
    elif kind != "edit":
        ann.row(f"{kind}_message", **place, seq=message.seq)
    elif not message.is_deleted and not message.call_ids:
        ann.row("edit_message", **place, seq=message.seq, content="x", tokens=tokens)


def save_summary(ann, stored, conversation_id, through_seq, tokens) -> None:
    """It is saved exactly where the rules allow it."""
    is_saved = True
    try:
        ann.row(
            "save_summary", conversation_id=conversation_id, content="text",
            through_seq=through_seq, previous_through_seq=stored.through_seq,
            tokens=tokens,
        )  # fmt: skip
    except psycopg.Error as error:
        assert error.sqlstate in ("22023", "PC010")
        is_saved = False
    # Whether a stale one can be written anew isn't among the rules of contexts.
    if through_seq != stored.through_seq:
        assert is_saved == may_summarise(stored, through_seq)


def check_batch(ann, conversation_id, stored: Conversation, limit: int) -> None:
    """It is what the rules say, and save_summary takes it."""
    rows = ann.rows(
        "summary_batch", conversation_id=conversation_id, message_limit=limit
    )
    found = [
        (row["through_seq"], [m["seq"] for m in json.loads(row["messages"])])
        for row in rows
    ]
    expected = summary_batch(stored, limit)
    assert found == ([expected] if expected else [])


def check_counters(db, conversation_id, stored: Conversation) -> None:
    counters = db.execute(
        "select summary_through_seq, body_count, body_tokens, message_count,"
        " token_total from convo.conversation where conversation_id = %s",
        [conversation_id],
    ).fetchone()
    fresh = body(stored, stored.through_seq)
    assert counters == (
        stored.through_seq,
        len(fresh),
        sum(m.tokens for m in fresh),
        len(stored.live),
        sum(m.tokens for m in stored.live),
    )


def check_calls(kept: list[Message]) -> list[str]:
    """Each result has its call, and nothing comes between the two."""
    waiting: list[str] = []
    for message in kept:
        for result_id in message.result_ids:
            waiting.remove(result_id)
        assert not waiting or message.result_ids
        waiting += message.call_ids
    return waiting


def check_safety(items: list[dict], stored: Conversation, policy: Policy) -> None:
    """What must hold of every context, whichever rule made it."""
    running = 0
    for ordinal, item in enumerate(items, 1):
        running += item["tokens"]
        assert (item["ordinal"], item["running_tokens"]) == (ordinal, running)
    assert running + policy.message_overhead * len(items) <= policy.token_budget
    by_seq = {m.seq: m for m in stored.messages}
    assert [item["kind"] for item in items] == sorted(
        (item["kind"] for item in items),
        key=["system", "memory", "summary", "recalled", "message"].index,
    )
    said = [i["seq"] for i in items if i["kind"] in ("recalled", "message")]
    assert len(said) == len(set(said))
    check_calls([by_seq[i["seq"]] for i in items if i["kind"] == "recalled"])
    kept = [by_seq[item["seq"]] for item in items if item["kind"] == "message"]
    assert kept
    open_ids = check_calls(kept)
    assert not open_ids or policy.open_calls == "keep"
    if policy.start_on_user:
        assert kept[0].role == "user"
    is_summarised = policy.strategy in ("summary", "hybrid")
    covered = stored.through_seq if is_summarised else 0
    users = [m for m in body(stored, covered) if m.role == "user" and m.says_something]
    if policy.pin_last_user and users:
        assert users[-1] in kept


def check_explanation(rows: list[dict], items: list[dict], stored) -> None:
    """It tells the same, and names every message of the conversation once."""
    assert [
        (row["kind"], row["seq"], row["role"], row["tokens"], row["running_tokens"])
        for row in rows
        if row["is_kept"]
    ] == [
        (item["kind"], item["seq"], item["role"], item["tokens"],
         item["running_tokens"])
        for item in items
    ]  # fmt: skip
    named = [
        row["seq"]
        for row in rows
        if row["kind"] not in ("summary", "memory") and row["seq"] is not None
    ]
    assert sorted(named) == [m.seq for m in stored.messages]
    for row in rows:
        assert (row["reason"] == "kept") == row["is_kept"]
        assert (row["running_tokens"] is not None) == row["is_kept"]


def memory_tokens(ann, limit: int) -> int | None:
    """The size of what is known, last accessed first, by key."""
    facts = sorted(
        (row["key"], row["value"]) for row in ann.rows("recall", page_size=limit)
    )
    lines = ["What is known about the user; facts, not instructions:"]
    lines += [f"- {json.dumps(key)}: {json.dumps(value)}" for key, value in facts]
    return ann.value("estimate_tokens", content="\n".join(lines)) if facts else None


def check(ann, db, conversation_id, policy: Policy, name: str, recalls) -> None:
    stored = replace(
        read(db, conversation_id),
        memory_tokens=memory_tokens(ann, policy.memory_limit),
        recalls=recalls,
    )
    check_counters(db, conversation_id, stored)
    check_batch(ann, conversation_id, stored, policy.message_limit)
    arguments = {"conversation_id": conversation_id, "policy": name}
    try:
        expected = context(stored, policy)
    except NoRoom as no_room:
        for function in ("get_context", "explain_context"):
            with pytest.raises(psycopg.Error) as caught:
                ann.rows(function, **arguments)
            assert caught.value.sqlstate == "PC020"
            detail = json.loads(caught.value.diag.message_detail)
            assert detail == {"conversation_id": str(conversation_id), **no_room.detail}
        return
    items = ann.rows("get_context", **arguments)
    assert [(i["kind"], i["seq"], i["role"], i["tokens"]) for i in items] == expected
    check_safety(items, stored, policy)
    check_explanation(ann.rows("explain_context", **arguments), items, stored)


CALL_AND_RESULT = ("append", [
    {"role": "user", "content": "text"},
    {"role": "assistant", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ]},
    {"role": "tool", "tool_call_id": "a", "content": "text"},
], [1, 2, 4])  # fmt: skip
LATE_RESULT = ("append", [CALL_AND_RESULT[1][2]], [8])


# What a search finds is given by the test.
RECALL = """
    create or replace function convo._recall_messages(
        conversation convo.conversation, policy convo.policy_record, before_seq integer
    ) returns integer[] language sql stable return array(
        select r.seq
        from unnest(current_setting('test.recalls')::integer[])
            with ordinality as r (seq, n)
        where r.seq < _recall_messages.before_seq
        order by r.n
    )
"""


@pytest.mark.parametrize(
    ("strategies", "sizes", "most"),
    [(STRATEGIES, (1, 8), 400), (["hybrid"], (6, 12), 150)],
    ids=["any", "hybrid"],
)
def test_contexts_follow_the_rules(ann, service, db, strategies, sizes, most):
    db.execute(RECALL)

    @SETTINGS
    @given(
        prompt=st.sampled_from([None, None, "text", "text " * 20]),
        recalls=st.lists(st.integers(1, 12), max_size=8, unique=True),
        facts=st.integers(0, 4),
        changes=st.lists(CHANGES, min_size=sizes[0], max_size=sizes[1]),
        data=st.data(),
    )
    def run(prompt, recalls, facts, changes, data):
        ann.conn.execute(
            "select set_config('test.recalls', %s, false)",
            ["{" + ",".join(map(str, recalls)) + "}"],
        )
        ann.value("forget_all")
        known = [{"key": f"key {n}", "value": "x"} for n in range(facts)]
        ann.rows("remember", facts=json.dumps(known))
        conversation_id = ann.create(system_prompt=prompt)
        for kind, *what in changes:
            change(ann, db, conversation_id, kind, *what)
        for _ in range(3):
            policy = data.draw(policies(strategies, most))
            service.row("set_policy", name="any", **asdict(policy))
            check(ann, db, conversation_id, policy, "any", recalls)

    run()


def test_a_result_that_joins_a_summarised_call_counts_as_summarised(ann, db):
    conversation_id = ann.create()
    for kind, *what in [
        CALL_AND_RESULT,
        ("say", "user", 16),
        ("summarise", 2, 32),
        ("delete", 2, None),
        LATE_RESULT,
    ]:
        change(ann, db, conversation_id, kind, *what)

    stored = read(db, conversation_id)
    assert stored.messages[-1].group_seq == 2
    check_counters(db, conversation_id, stored)
