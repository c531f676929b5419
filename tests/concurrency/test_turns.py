"""Requests that are prepared, completed and lost at once: one answer, nothing stuck."""

from __future__ import annotations

import json

import psycopg
import pytest

WORKERS = 8


def response(text):
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    return json.dumps(
        {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    )


def prepare(conn, conversation):
    return conn.execute(
        "select request_id, body from convo.prepare_request(%s, 'openai', 'm')",
        (conversation,),
    ).fetchone()


def complete(conn, request_id, text="answer"):
    return conn.execute(
        "select seq from convo.complete_request(%s, %s)", (request_id, response(text))
    ).fetchall()


def stored(db):
    return db.execute(
        "select (select count(*) from convo.message where role = 'assistant'),"
        " (select count(*) from convo.usage)"
    ).fetchone()


def test_workers_with_one_response_store_one_answer(apps, app, crew, db, codes,
                                                    make_conversation):  # fmt: skip
    request_id, _ = prepare(app, make_conversation(1))
    results = crew.at_once(
        [lambda conn=conn: complete(conn, request_id) for conn in apps(WORKERS)]
    )
    assert results == [[(2,)]] * WORKERS
    assert stored(db) == (1, 1)


def test_of_workers_with_different_responses_one_wins(apps, app, crew, db, codes,
                                                      make_conversation):  # fmt: skip
    request_id, _ = prepare(app, make_conversation(1))
    results = crew.at_once(
        [
            lambda conn=conn, n=n: complete(conn, request_id, str(n))
            for n, conn in enumerate(apps(WORKERS))
        ]
    )
    assert sorted(map(str, codes(results))) == ["None"] + ["PC011"] * (WORKERS - 1)
    assert stored(db) == (1, 1)


def test_a_worker_waits_for_the_one_before(apps, crew, db, make_conversation, app):
    request_id, _ = prepare(app, make_conversation(1))
    first, second = apps(2)
    with first.transaction():
        complete(first, request_id)
        waiting = crew.blocked(
            second,
            "select count(*) from convo.complete_request(%s, %s)",
            request_id,
            response("answer"),
        )
    assert waiting.result(10) == 1
    assert stored(db) == (1, 1)


def test_a_worker_whose_rival_rolled_back_stores_the_answer(
    apps, crew, db, make_conversation, app
):
    request_id, _ = prepare(app, make_conversation(1))
    first, second = apps(2)
    with first.transaction(force_rollback=True):
        complete(first, request_id, "other")
        waiting = crew.blocked(
            second,
            "select count(*) from convo.complete_request(%s, %s)",
            request_id,
            response("answer"),
        )
    assert waiting.result(10) == 1
    assert db.execute("select content from convo.message where seq = 2").fetchone() == (
        "answer",
    )


def test_each_body_replays_while_the_conversation_changes(
    apps, crew, db, make_conversation, check_invariants
):
    conversation = make_conversation(5)

    def change(number, conn):
        def run():
            for i in range(20):
                text = f"{number}-{i}"
                conn.execute(
                    "select convo.edit_message(%s, %s, %s)",
                    (conversation, 1 + (number + i) % 5, text),
                )
                conn.execute(
                    "select convo.update_conversation(%s, null, %s)",
                    (conversation, text),
                )
                conn.execute(
                    "select convo.append_message(%s, 'user', %s)", (conversation, text)
                )

        return run

    def turns(conn):
        def run():
            bodies = []
            for i in range(10):
                request_id, body = prepare(conn, conversation)
                bodies.append((request_id, body))
                complete(conn, request_id, str(i))
            return bodies

        return run

    connections = apps(8)
    results = crew.at_once(
        [change(n, conn) for n, conn in enumerate(connections[:4])]
        + [turns(conn) for conn in connections[4:]]
    )
    assert not [result for result in results if isinstance(result, Exception)]
    bodies = [pair for result in results[4:] for pair in result]
    assert len(bodies) == 40
    for request_id, body in bodies:
        again = connections[0].execute("select convo.replay_request(%s)", (request_id,))
        assert again.fetchone() == (body,)
    check_invariants(db)


@pytest.mark.parametrize("change", ["delete", "transfer"])
def test_a_conversation_that_goes_takes_its_request_along(
    change, app, apps, service, crew, db, codes, make_conversation, check_invariants
):
    for _ in range(20):
        conversation = make_conversation(1)
        request_id, _ = prepare(app, conversation)
        first, second = apps(2)
        statement = {
            "delete": (first, "select convo.delete_conversation(%s)"),
            "transfer": (service, "select convo.transfer_conversation(%s, 'ben')"),
        }[change]
        results = crew.at_once(
            [
                lambda s=statement, c=conversation: s[0].execute(s[1], (c,)),
                lambda c=second, r=request_id: complete(c, r),
            ]
        )
        first.close()
        second.close()
        ended, completed = codes(results)
        assert ended is None
        assert completed in (None, "PC001", "PC003", "PC012")
    check_invariants(db)


@pytest.mark.parametrize("change", ["delete", "transfer"])
def test_who_prepares_waits_for_one_who_takes_the_conversation(
    change, apps, service, crew, make_conversation
):
    conversation = make_conversation(1)
    (other,) = apps(1)
    (app,) = apps(1)
    owner, statement = {
        "delete": (app, "select convo.delete_conversation(%s)"),
        "transfer": (service, "select convo.transfer_conversation(%s, 'ben')"),
    }[change]
    with owner.transaction():
        owner.execute(statement, (conversation,))
        waiting = crew.blocked(
            other,
            "select body from convo.prepare_request(%s, 'openai')",
            conversation,
        )
    with pytest.raises(psycopg.Error) as caught:
        waiting.result(10)
    assert caught.value.sqlstate in ("PC001", "PC012")


@pytest.mark.parametrize("change", ["delete", "transfer"])
def test_who_takes_the_conversation_waits_for_one_who_prepares(
    change, app, service, crew, make_conversation, check_invariants, db
):
    conversation = make_conversation(1)
    owner, statement = {
        "delete": (service, "select convo.delete_conversation(%s)::text"),
        "transfer": (service, "select (convo.transfer_conversation(%s, 'ben')).title"),
    }[change]
    with app.transaction():
        app.execute(
            "select from convo.prepare_request("
            "%s, 'openai', parameters => '{\"tools\": [\"new\"]}')",
            (conversation,),
        )
        waiting = crew.blocked(owner, statement, conversation)
    waiting.result(10)
    check_invariants(db)
