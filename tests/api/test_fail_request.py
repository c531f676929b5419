"""fail_request: a try that gave no answer, and what it cost."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest


@pytest.fixture
def prepared(ann, conversation_id):
    """A request over ann's conversation of one message."""
    ann.say(conversation_id, 5)
    return ann.row("prepare_request", conversation_id=conversation_id, format="openai")


def fail(caller, request, error="sesame error", **options):
    caller.value(
        "fail_request", request_id=request["request_id"], error=error, **options
    )


def test_the_request_has_failed(ann, db, prepared, conversation_id):
    fail(ann, prepared)
    (row,) = ann.rows("list_requests", conversation_id=conversation_id)
    assert row["status"] == "failed"
    assert row["finished_at"] >= row["created_at"]
    assert db.execute("select error from convo.request").fetchone() == ("sesame error",)
    assert len(ann.live(conversation_id)) == 1


def test_each_try_costs(ann, db, prepared):
    usage = json.dumps({"prompt_tokens": 7, "completion_tokens": 0})
    for _ in range(2):
        fail(ann, prepared, usage=usage)
    fail(ann, prepared)
    assert db.execute(
        "select count(*), sum(input_tokens) from convo.usage"
    ).fetchone() == (2, 14)


def test_a_long_error_is_cut(ann, db, prepared):
    fail(ann, prepared, "x" * 5000)
    assert db.execute("select length(error) from convo.request").fetchone() == (2000,)


def test_an_error_is_needed(ann, prepared, fails):
    with fails("22023", argument="error"):
        fail(ann, prepared, None)


def test_a_completed_request_cannot_fail(ann, prepared, fails, conversation_id):
    answer = json.dumps({"role": "assistant", "content": "sesame"})
    ann.rows("complete_request", request_id=prepared["request_id"], response=answer)
    with fails("PC011", request_id=str(prepared["request_id"]), first_seq=2):
        fail(ann, prepared)
    (row,) = ann.rows("list_requests", conversation_id=conversation_id)
    assert row["status"] == "completed"


def test_what_is_not_theirs_is_not_there(prepared, outsider, fails):
    for one in (prepared["request_id"], uuid4()):
        with fails("PC003", request_id=str(one)):
            fail(outsider, {"request_id": one})


def test_without_a_context_there_is_an_error(unknown, fails):
    with fails("PC030"):
        fail(unknown, {"request_id": uuid4()})
