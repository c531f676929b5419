"""The calls and records are compared with the catalog, so that they can't drift."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import psycopg
import pytest

from pgconvo import (
    AsyncClient,
    ClaimedSummary,
    Client,
    ContextItem,
    Conversation,
    ExplainedItem,
    Memory,
    Message,
    Policy,
    PurgeResult,
    Request,
    RetentionPolicy,
    StaleSummary,
    Summary,
    SummaryBatch,
    WindowMessage,
    _calls,
)

CALLS = {c.name: c for c in vars(_calls).values() if isinstance(c, _calls.Call)}

PUBLIC_FUNCTIONS = """
    select p.oid, p.proname, coalesce(p.proargnames, '{}') as names,
           array(select t.oid::regtype::text
                   from unnest(p.proargtypes) with ordinality as t(oid, place)
                  order by t.place) as types
      from pg_catalog.pg_proc as p
     where p.pronamespace = 'convo'::regnamespace
       and p.proname !~ '^_'
"""


@pytest.fixture
def functions(db: psycopg.Connection) -> dict[str, Any]:
    """The public functions by name: oid, argument names, argument types."""
    rows = db.execute(PUBLIC_FUNCTIONS).fetchall()
    return {name: (oid, names[: len(types)], types) for oid, name, names, types in rows}


def public_methods(client: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(client, callable) if name[0] != "_"}


def test_every_public_function_is_a_call(functions):
    assert set(CALLS) == set(functions)


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_every_call_is_a_method_of_both_clients(client):
    assert set(CALLS) < public_methods(client)


def test_the_clients_have_the_same_methods():
    assert public_methods(Client) == public_methods(AsyncClient)


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_every_method_has_a_docstring(client):
    for name in public_methods(client):
        assert inspect.getdoc(getattr(client, name)), name


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize("name", CALLS)
def test_help_shows_the_parameters_after_self(client, name):
    parameters = list(inspect.signature(getattr(client, name)).parameters)

    assert parameters == ["self", *CALLS[name].signature.parameters]


def test_parameters_have_the_names_and_the_order_of_the_function(functions):
    expected = {name: function[1] for name, function in functions.items()}

    assert {n: list(c.signature.parameters) for n, c in CALLS.items()} == expected


def test_parameters_are_cast_to_the_types_of_the_function(functions, db):
    def full_name(sql_type: str) -> Any:
        return db.execute("select %s::regtype::text", (sql_type,)).fetchone()[0]

    sent = {n: [full_name(t) for t in c.sql_types.values()] for n, c in CALLS.items()}

    assert sent == {name: function[2] for name, function in functions.items()}


def test_parameters_have_the_defaults_of_the_function(functions, db):
    def default(oid: int, place: int, sql_type: str) -> Any:
        query = "select pg_get_function_arg_default(%s, %s)"
        expression = db.execute(query, (oid, place)).fetchone()[0]
        if expression is None:
            return inspect.Parameter.empty
        return db.execute(f"select ({expression})::{sql_type}").fetchone()[0]

    for name, (oid, _, types) in functions.items():
        parameters = CALLS[name].signature.parameters.values()
        expected = [default(oid, place, t) for place, t in enumerate(types, 1)]
        assert [p.default for p in parameters] == expected, name


@pytest.mark.parametrize(
    ("record", "sql_type"),
    [
        (Conversation, "conversation_record"),
        (Message, "message_record"),
        (ContextItem, "context_record"),
        (Policy, "policy_record"),
        (Request, "request_record"),
        (Summary, "summary_record"),
        (SummaryBatch, "summary_batch_record"),
        (Memory, "memory_record"),
        (RetentionPolicy, "retention_record"),
        (PurgeResult, "purge_record"),
    ],
)
def test_a_record_has_the_columns_of_its_type(db, record, sql_type):
    columns = db.execute(f"select (null::convo.{sql_type}).*").description

    assert [field.name for field in fields(record)] == [c.name for c in columns]


@pytest.mark.parametrize(
    ("record", "function"),
    [
        (WindowMessage, "token_window"),
        (ExplainedItem, "explain_context"),
        (ClaimedSummary, "claim_summaries"),
        (StaleSummary, "list_stale_summaries"),
    ],
)
def test_a_record_has_the_columns_of_its_function(db, record, function):
    query = """
        select array(
            select a.name
            from unnest(p.proargnames, p.proargmodes) as a (name, mode)
            where a.mode = 't'
        )
        from pg_proc as p
        where p.oid = %s::regproc
    """
    columns = db.execute(query, [f"convo.{function}"]).fetchone()[0]

    assert [field.name for field in fields(record)] == columns


def test_a_missing_argument_is_a_type_error():
    with pytest.raises(TypeError, match="role"):
        CALLS["append_message"].parameters("id")


def test_an_unknown_argument_is_a_type_error():
    with pytest.raises(TypeError, match="colour"):
        CALLS["append_message"].parameters("id", "user", "Hi", colour="red")
