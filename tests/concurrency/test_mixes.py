"""Any mix of changes at once: no deadlock, no unexpected error, counters right."""

from __future__ import annotations

import random

import psycopg
import pytest

CALLS = '[{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]'
CALL = f'{{"role": "assistant", "content": null, "tool_calls": {CALLS}}}'
RESULT = '{"role": "tool", "tool_call_id": "c", "content": "r"}'
TURN = f'[{{"role": "user", "content": "a"}}, {CALL}, {RESULT}]'
SEQ = "(select 1 + floor(random() * last_seq)::int from convo.get_conversation(%(id)s))"
COMMON = {
    "append": "select convo.append_message(%(id)s, %(role)s, %(text)s)",
    "append with a key": (
        "select convo.append_message(%(id)s, 'user', 'x', idempotency_key => %(key)s)"
    ),
    "append many": f"select count(*) from convo.append_messages(%(id)s, '{TURN}')",
    "edit": f"select convo.edit_message(%(id)s, {SEQ}, %(text)s)",
    "delete": f"select convo.delete_message(%(id)s, {SEQ})",
    "restore": f"select convo.restore_message(%(id)s, {SEQ})",
    "clear the end": f"select convo.delete_messages(%(id)s, {SEQ})",
    "fork": f"select convo.fork_conversation(%(id)s, {SEQ})",
    "update": "select convo.update_conversation(%(id)s, title => %(text)s)",
    "prompt": "select convo.update_conversation(%(id)s, system_prompt => %(key)s)",
    "archive": "select convo.archive_conversation(%(id)s)",
}
RARE = {
    "delete the conversation": "select convo.delete_conversation(%(id)s)",
}
TRANSFER = "select convo.transfer_conversation(%(id)s, %(user)s)"
# Not there, transferred or deleted; no such message; a message without text.
EXPECTED = {"PC001", "PC002", "PC012", "22023", "PC011"}


def run_mix(conn, rng, conversations, operations, turns):
    """Do random things; return the errors that must not happen."""
    wrong = []
    for _ in range(turns):
        name = rng.choice(list(operations))
        arguments = {
            "id": rng.choice(conversations),
            "role": rng.choice(["user", "assistant", "system"]),
            "text": "word " * rng.randrange(9),
            "key": f"k{rng.randrange(4)}",
            "user": rng.choice(["ann", "bob"]),
        }
        try:
            conn.execute(operations[name], arguments)
        except psycopg.Error as error:
            if error.sqlstate not in EXPECTED:
                wrong.append((name, error.sqlstate, str(error)))
    return wrong


@pytest.mark.parametrize("seed", range(3))
def test_mixes(
    seed, connect, crew, db, make_conversation, check_invariants, app, service
):
    conversations = [make_conversation(4) for _ in range(3)]
    everything = {**COMMON, **(RARE if seed == 2 else {})}
    logins = [*["ann"] * 5, *["bob"] * 2]
    jobs = [
        lambda n=n, user=user: run_mix(
            connect("test_app", "acme", user),
            random.Random(f"{seed} {n}"),
            conversations,
            everything,
            60,
        )
        for n, user in enumerate(logins)
    ]
    workers = {**COMMON, "transfer": TRANSFER, "transfer again": TRANSFER}
    jobs += [
        lambda n=n: run_mix(
            connect("test_service", "acme"),
            random.Random(f"{seed} service {n}"),
            conversations,
            workers,
            60,
        )
        for n in range(2)
    ]
    assert crew.at_once(jobs) == [[]] * len(jobs)
    check_invariants(db)
    stored = db.execute("select count(*) from convo.message").fetchone()[0]
    assert stored > 100 or seed == 2
    # Whose a conversation is, all its rows are.
    assert (
        db.execute(
            """
            select c.conversation_id
            from convo.conversation as c
            join convo.message as m using (tenant_id, conversation_id)
            where c.user_id <> m.user_id
            """
        ).fetchall()
        == []
    )


def test_two_deletions_of_one_message_count_once(
    app, apps, crew, db, make_conversation, check_invariants
):
    conversation = make_conversation(3)
    jobs = [
        lambda c=conn: c.execute("select convo.delete_message(%s, 2)", (conversation,))
        for conn in apps(6)
    ]
    crew.at_once(jobs)
    assert app.execute(
        "select message_count from convo.get_conversation(%s)", (conversation,)
    ).fetchone() == (2,)
    check_invariants(db)


def test_expected_revision_has_one_winner(
    apps, crew, codes, db, make_conversation, check_invariants
):
    conversation = make_conversation(1)
    jobs = [
        lambda c=conn: c.execute(
            "select convo.edit_message(%s, 1, 'x', expected_revision => 1)",
            (conversation,),
        )
        for conn in apps(6)
    ]
    assert sorted(codes(crew.at_once(jobs)), key=str) == [None] + ["PC010"] * 5
    check_invariants(db)


def test_a_result_joins_a_call_that_is_just_being_stored(
    apps, crew, make_conversation, db
):
    first, second = apps(2)
    conversation = make_conversation(1)
    append = "select group_seq from convo.append_messages(%s, %s)"
    with first.transaction():
        first.execute(append, (conversation, CALL))
        waiting = crew.blocked(second, append, conversation, RESULT)
    assert waiting.result(10) == 2
