"""Without the vector track its functions say so, and everything else works."""

from __future__ import annotations

import psycopg
import pytest

from pgconvo.migrate import migrate

from .conftest import Caller

CALLS = {
    "store_embedding": {"seq": 1, "embedding": "{1}"},
    "claim_embeddings": {},
    "search_similar": {"embedding": "{1}"},
    "search_hybrid": {"query": "apple", "embedding": "{1}"},
}


@pytest.fixture
def dsn(make_database):
    """A database of the core alone, on a server that may have pgvector."""
    dsn = make_database()
    with psycopg.connect(dsn, autocommit=True) as conn:
        migrate(conn)
    return dsn


@pytest.mark.parametrize("function", CALLS)
def test_it_says_what_is_missing(service, fails, conversation_id, function):
    arguments = {"model": "m", **CALLS[function]}
    if function == "store_embedding":
        arguments["conversation_id"] = conversation_id
    with fails("0A000", track="vector"):
        service.rows(function, **arguments)


def test_who_does_not_say_who_they_are_is_told_that_first(unknown, fails):
    with fails("PC030"):
        unknown.rows("search_similar", embedding="{1}", model="m")


def test_the_rest_works(ann: Caller, ben: Caller, service: Caller, conversation_id):
    ann.say(conversation_id, 1, 1)
    ann.row("edit_message", conversation_id=conversation_id, seq=1, content="apple")
    assert ann.rows("search_messages", query="apple")[0]["seq"] == 1
    fork = ann.value("fork_conversation", conversation_id=conversation_id)
    service.row("transfer_conversation", conversation_id=fork, to_user_id="ben")
    assert len(ben.live(fork)) == 2
    assert ann.value("delete_conversation", conversation_id=conversation_id)
