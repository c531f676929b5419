"""Every function, called by everybody who isn't the conversation's owner.

Generated from the catalogs: a new function is called with the arguments that are taught
here, or the tests fail and say which one to teach.
"""

from __future__ import annotations

import pytest
from psycopg import sql
from psycopg.types.json import Json, Jsonb

from .world import APP_ATTACKERS, ATTACKERS, NOBODY, PEOPLE, VICTIM, attempt, secret

LEAVE_OUT = object()
TARGETS = ("conversation_id", "request_id")
ARGUMENTS = {
    "action": "delete",
    "after_seq": LEAVE_OUT,
    "at": LEAVE_OUT,
    "basis": "activity",
    "before_at": LEAVE_OUT,
    "before_id": LEAVE_OUT,
    "before_seq": 1000,
    "content": "a new text",
    "embedding": "{1, 0, 0}",
    "error": "an error",
    "expected_revision": LEAVE_OUT,
    "expected_seq": LEAVE_OUT,
    "facts": Json([{"key": "a fact", "value": "a value"}]),
    "format": "openai",
    "from_seq": 1,
    "idempotency_key": "a new key",
    "include_archived": True,
    "is_dry_run": True,
    "key": "a fact",
    "lease": "1 ms",
    "max_age": "1 year",
    "max_batches": 0,
    "memory_limit": LEAVE_OUT,
    "message_overhead": LEAVE_OUT,
    "message_limit": 1000,
    "messages": Json([{"role": "user", "content": "a new text"}]),
    "metadata": Jsonb({}),
    "model": "a model",
    "name": "a policy",
    "open_calls": LEAVE_OUT,
    "page_size": 1000,
    "parameters": LEAVE_OUT,
    "pin_last_user": LEAVE_OUT,
    "policy": "a policy",
    "previous_through_seq": 0,
    "query": "edited",
    "reason": "a reason",
    "recall_limit": LEAVE_OUT,
    "response": Json({"role": "assistant", "content": "an answer"}),
    "retention_class": "short",
    "role": "user",
    "seq": 1,
    "source_conversation_id": LEAVE_OUT,
    "start_on_user": LEAVE_OUT,
    "step_tokens": LEAVE_OUT,
    "strategy": "summary",
    "summary_placement": LEAVE_OUT,
    "summary_share": LEAVE_OUT,
    "summary_threshold": LEAVE_OUT,
    "system_prompt": "a prompt",
    "tenant_id": "a",
    "through_seq": 1,
    "title": "a title",
    "to_user_id": "bob",
    "token": "a token",
    "token_budget": 1_000_000,
    "tokens": LEAVE_OUT,
    "usage": LEAVE_OUT,
    "user_id": LEAVE_OUT,
}
# API: who may call what.
CONTEXT = {
    "set_context", "set_context_token", "current_tenant_id", "current_user_id",
}  # fmt: skip
WITHOUT_TENANT = CONTEXT | {"estimate_tokens", "version", "purge", "purge_all"}
READING = {
    "get_conversation", "list_conversations", "last_messages", "list_messages",
    "token_window", "get_context", "render_context", "message_revisions",
    "replay_request", "list_requests", "summary_batch", "recall", "search_messages",
    "search_similar", "search_hybrid",
}  # fmt: skip
WRITING = {
    "create_conversation", "update_conversation", "archive_conversation",
    "unarchive_conversation", "delete_conversation", "fork_conversation",
    "append_message", "append_messages", "edit_message", "delete_message",
    "restore_message", "delete_messages", "save_summary", "prepare_request",
    "complete_request", "fail_request", "remember", "forget", "forget_all",
    "store_embedding",
}  # fmt: skip
NUMBERS = {
    "explain_context", "get_policy", "list_policies", "summary_due",
    "list_stale_summaries",
}  # fmt: skip
FOR_A_USER = {"remember", "recall", "forget", "forget_all"}
TEXT = {"estimate_tokens", "version"}
# 0A000 without the vector track; who has no such model is told so.
VECTOR = {"store_embedding", "claim_embeddings", "search_similar", "search_hybrid"}
MAY_CALL = {
    "test_app": CONTEXT | TEXT | NUMBERS | READING | WRITING,
    "test_service": CONTEXT | TEXT | NUMBERS | READING | WRITING
    | {"transfer_conversation", "hold_conversation", "release_conversation",
       "set_retention", "set_policy", "delete_policy", "claim_summaries",
       "claim_embeddings"},
    "test_reader": CONTEXT | TEXT | NUMBERS | READING,
    "test_maintainer": TEXT
    | {"current_tenant_id", "current_user_id", "purge", "purge_all"},
    "test_backup": {"version"},
    "test_nobody": set(),
}  # fmt: skip


@pytest.fixture(scope="module")
def functions(world, sessions):
    """The public functions and procedures: kind and names of arguments."""
    conn = sessions("postgres")
    rows = conn.execute(
        r"""
        select p.proname, p.prokind::text, coalesce(p.proargnames[:p.pronargs], '{}')
        from pg_proc as p
        where p.pronamespace = 'convo'::regnamespace and p.proname !~ '^_'
        order by 1
        """
    ).fetchall()
    conn.rollback()
    unknown = {
        f"{name}: {argument}"
        for name, _, arguments in rows
        for argument in arguments
        if argument not in ARGUMENTS and argument not in TARGETS
    }
    if unknown:
        pytest.fail(f"teach ARGUMENTS in {__file__}: {sorted(unknown)}")
    known = set().union(*MAY_CALL.values())
    if new := {name for name, _, _ in rows} - known:
        pytest.fail(f"teach MAY_CALL in {__file__} who may call {sorted(new)}")
    return {name: (kind, arguments) for name, kind, arguments in rows}


def call(functions, name, target):
    """A call about a conversation, or about a request where it takes one."""
    kind, arguments = functions[name]
    given = {
        argument: target if argument in TARGETS else ARGUMENTS[argument]
        for argument in arguments
        if ARGUMENTS.get(argument) is not LEAVE_OUT
    }
    return sql.SQL("{} convo.{}({})").format(
        sql.SQL("call" if kind == "p" else "select * from"),
        sql.Identifier(name),
        sql.SQL(", ").join(
            sql.SQL("{} => {}").format(sql.Identifier(argument), value)
            for argument, value in given.items()
        ),
    )


def targets(arguments, things):
    """What there is of what a function is about, by its state."""
    if "request_id" in arguments:
        return things.requests
    return things.conversations if "conversation_id" in arguments else {}


def without_id(outcome, conversation):
    return str(outcome).replace(str(conversation), "that id")


@pytest.mark.parametrize("attacker", ATTACKERS, ids=lambda a: a.name)
def test_not_yours_is_the_same_as_not_there(world, act, functions, attacker):
    """Whole outcomes are compared: rows or code, MESSAGE, DETAIL, HINT and CONTEXT."""
    wrong = []
    for name, (_, arguments) in functions.items():
        with act(attacker.login, attacker.tenant, attacker.user) as conn:
            missing = attempt(conn, call(functions, name, NOBODY))
            if secret(*VICTIM) in str(missing):
                wrong.append(f"{name}: {missing}")
            for state, victims in targets(arguments, world.things[VICTIM]).items():
                got = attempt(conn, call(functions, name, victims))
                if name == "create_conversation" and attacker.tenant == "a":
                    # The key is the tenant's: somebody else's id is taken.
                    same = got.code in ("PC013", "PC030", "42501")
                else:
                    same = without_id(got, victims) == without_id(missing, NOBODY)
                if not same:
                    wrong.append(f"{name} {state}: {got}, not {missing}")
                if name != "create_conversation" and not (
                    got.is_nothing
                    or got.rows == [(False,)]
                    or got.code in ("PC001", "PC003", "PC030", "42501")
                    or (name in VECTOR and got.code in ("0A000", "22023"))
                ):
                    wrong.append(f"{name} {state}: {got}")
    assert wrong == []


@pytest.mark.parametrize(
    "attacker",
    [a for a in ATTACKERS if a.login != "test_nobody"],
    ids=lambda a: a.name,
)
def test_who_does_not_say_who_they_are_is_told_so(act, functions, attacker):
    missing = []
    if not attacker.tenant:
        missing = ['{"missing": "tenant_id"}']
    elif attacker.login == "test_app" and not attacker.user:
        missing = ['{"missing": "user_id"}']
    wrong = []
    for name in MAY_CALL[attacker.login] - WITHOUT_TENANT:
        with act(attacker.login, attacker.tenant, attacker.user) as conn:
            got = attempt(conn, call(functions, name, NOBODY))
        said = [got.words[1]] if got.code == "PC030" else []
        expected = missing
        if not missing and not attacker.user and name in FOR_A_USER:
            expected = ['{"missing": "user_id"}']
        if said != expected:
            wrong.append(f"{name}: {got}")
    assert wrong == []


@pytest.mark.parametrize("login", MAY_CALL)
def test_each_role_calls_what_the_contract_says(act, functions, login):
    wrong = []
    for name in functions:
        with act(login, *VICTIM) as conn:
            got = attempt(conn, call(functions, name, NOBODY))
        if (got.code == "42501") != (name not in MAY_CALL[login]):
            wrong.append(f"{name}: {got}")
    assert wrong == []
    with act("postgres") as conn:
        granted = conn.execute(
            r"""
            select p.proname
            from pg_proc as p
            where p.pronamespace = 'convo'::regnamespace
                and p.proname !~ '^_'
                and has_function_privilege(%s, p.oid, 'execute')
            """,
            (login,),
        )
        assert {name for (name,) in granted} == MAY_CALL[login]


@pytest.mark.parametrize(
    ("login", "person"),
    [
        *(("test_app", person) for person in PEOPLE),
        ("test_service", ("a", "bob")),
        ("test_service", ("a", None)),
        ("test_reader", ("a", "bob")),
    ],
)
def test_who_may_is_answered(world, act, functions, login, person):
    """The other side: the same calls on one's own, or by the tenant's own roles."""
    wrong = []
    owner = person if login == "test_app" else VICTIM
    own = world.things[owner]
    for name in MAY_CALL[login] - CONTEXT:
        if name == "create_conversation" and login != "test_app":
            continue
        if name in FOR_A_USER and person != owner:
            continue
        with act(login, *person) as conn:
            target = own.prepared if "request_id" in functions[name][1] else own.live
            got = attempt(conn, call(functions, name, target))
            if name in VECTOR and got.code == "0A000":
                continue
            is_theirs = name not in READING or secret(*owner) in str(got)
            if got.code or got.count == 0 or not is_theirs:
                wrong.append(f"{name}: {got}")
    assert wrong == []


def test_creating_is_for_oneself_and_service_names_the_owner(world, act, functions):
    create = "select convo.create_conversation(user_id => %s)"
    with act("test_app", "a", "bob") as conn:
        assert attempt(conn, create, "bob").count == 1
        assert attempt(conn, create, "ann").code == "42501"
    with act("test_service", "a") as conn:
        assert attempt(conn, create, "ann").count == 1
        assert attempt(conn, create, None).code == "22023"
    # An id of another tenant is free, one of another user of the tenant is taken.
    create = "select convo.create_conversation(conversation_id => %s)"
    for victims in world.things[VICTIM].conversations.values():
        with act("test_app", "b", "ann") as conn:
            assert attempt(conn, create, victims).rows == [(victims,)]
        with act("test_app", "a", "bob") as conn:
            assert attempt(conn, create, victims).code == "PC013"
        with act("test_app", *VICTIM) as conn:
            is_gone = victims == world.things[VICTIM].gone
            assert attempt(conn, create, victims).code == ("PC012" if is_gone else "")


# What the functions call: granted too, since the functions are invokers.
CONVERSATION = "json_populate_record(null::convo.conversation, {row})"
REQUEST = "json_populate_record(null::convo.request, {request_row})"
FRAME = (
    "row({tenant}, {id}, null, {user}, 'openai', null, 'p', '{{}}', 1, '{{}}')"
    "::convo.request_frame"
)
POLICY = (
    "row('p', 'summary', 8000, null, 0, 0, true, true, 'drop', 'exchange', 20000, 0.8,"
    " 15, 0)::convo.policy_record"
)
PRIVATE = {
    "_advance_conversation": ("({id}, 1, 1, 1, 1, 1)", "PC001"),
    "_claim_embeddings": ("('a model', 1000)", "42501"),
    "_embedding_of": (f"({CONVERSATION}, 1)", ""),
    "_fused_candidates": ("({secret}, '{{1, 0, 0}}', 'a model', {id}, 9)", ""),
    "_nearest_embeddings": ("('{{1, 0, 0}}', 'a model', {id}, 9)", ""),
    "_require_vector": ("()", ""),
    "_store_embedding": ("({id}, 1, 'a model', '{{1, 0, 0}}')", "PC001"),
    "_audit": ("('hold', {id}, 'a reason')", "42501"),
    "_claim": ("('sub')", ""),
    "_collect_prompt": ("({tenant}, {user}, {sha256})", ""),
    "_considered_items": ("({id}, null, null, 0, true)", "PC001"),
    "_context_window": (f"({CONVERSATION}, {POLICY}, 0, 0, 0, true)", "PC020"),
    "_due_conversations": ("(true, null)", "42501"),
    "_fail": ("('PC001', '{{}}')", "PC001"),
    "_fail_not_found": ("({id})", "PC001"),
    "_find_append": ("({id}, {secret}, sha256('x'))", "PC001"),
    "_find_message": (f"({CONVERSATION}, 1)", "PC002"),
    "_fixed_items": (f"({CONVERSATION}, 'exchange', 1)", ""),
    "_begun_group": ("({id})", ""),
    "_given_up_seq": (f"({CONVERSATION})", ""),
    "_group_messages": (
        "({id}, 'openai_responses', array[]::convo._parsed_message[], 1)",
        "",
    ),
    "_has_open_call": (f"({CONVERSATION}, 1)", ""),
    "_has_tombstone": ("({id})", ""),
    "_lock_conversation": ("({id})", "PC001"),
    "_mark_stale": (f"({CONVERSATION}, 1)", ""),
    "_memory_block": ("({tenant}, {user}, 10)", ""),
    "_memory_item": (f"({CONVERSATION}, 10)", ""),
    "_newest_user_seq": (f"({CONVERSATION})", ""),
    "_open_calls": ("({id}, array[{secret}])", ""),
    "_lock_request": ("({request})", "PC003"),
    "_mark_changed": (f"({CONVERSATION}, 1)", ""),
    "_summary_end": (f"({CONVERSATION})", ""),
    "_price_of": ("('a model', clock_timestamp())", ""),
    "_record_usage": (
        "({tenant}, {request}, {id}, {user}, 'openai', 'm', '{{}}', false)",
        "42501",
    ),
    "_request_body": (f"({REQUEST})", "PC060"),
    "_request_items": (f"({REQUEST}, null)", "PC060"),
    "_request_texts": (f"({REQUEST})", ""),
    "_require_request": ("({request})", "PC003"),
    "_read_facts": ("('[]')", ""),
    "_recall_messages": (f"({CONVERSATION}, {POLICY}, 100)", ""),
    "_recalled_items": (f"({CONVERSATION}, {POLICY}, 0, 0, 0)", "PC020"),
    "_require_tenant": ("()", ""),
    "_require_user": ("()", ""),
    "_model_dimension": ("('a model', 3)", ""),
    "_mark_hold": ("({id}, true, 'a reason')", "42501"),
    "_rewind_summary": (f"({CONVERSATION}, 1)", ""),
    "_resolve_policy": (f"({CONVERSATION}, 'a policy', null)", ""),
    "_scan_groups": (f"({CONVERSATION}, {POLICY}, 0, 1000, true)", ""),
    "_set_deleted": ("({id}, 1, true)", "PC001"),
    "_set_hold": ("({id}, false, 'a reason')", "42501"),
    "_store_frame": (f"({FRAME}, array[{{secret}}, null, null, null])", "42501"),
    "_store_messages": (
        "({id}, 'openai', array[]::convo._parsed_message[], null, 'm', null)",
        "PC001",
    ),
    "_stale_seq": ("({id}, 1)", ""),
    "_store_memory": ("({tenant}, {user}, {secret}, 'a value', null, null)", "42501"),
    "_store_prompt": ("({user}, {secret})", ""),
    "_touch_memories": ("({tenant}, {user}, array[{secret}])", ""),
    "_search_candidates": ("({secret}, {id}, 9)", ""),
    "_uuid_v7": ("()", ""),
    "_verified_context": ("('a token')", "PC031"),
}


@pytest.mark.parametrize("attacker", APP_ATTACKERS[:2], ids=lambda a: a.name)
def test_what_the_functions_call_gives_no_more_than_they_do(world, act, attacker):
    with act("postgres") as conn:
        private = conn.execute(
            r"""
            select p.proname, p.oid::regproc::text
            from pg_proc as p
            where p.provolatile <> 'i'
                and (
                    p.pronamespace = 'convo'::regnamespace and p.proname ~ '^_'
                    or p.pronamespace = 'convo_private'::regnamespace
                )
            """
        ).fetchall()
        ((row, sha256),) = conn.execute(
            "select row_to_json(c)::text, c.system_prompt_sha256"
            " from convo.conversation as c where c.conversation_id = %s",
            (world.things[VICTIM].live,),
        ).fetchall()
        request = world.things[VICTIM].prepared
        ((request_row,),) = conn.execute(
            "select row_to_json(r)::text from convo.request as r"
            " where r.request_id = %s",
            (request,),
        ).fetchall()
    assert {name for name, _ in private} == PRIVATE.keys(), (
        f"teach PRIVATE in {__file__}"
    )
    wrong = []
    for name, qualified in private:
        arguments, expected = PRIVATE[name]
        if name == "_store_prompt" and attacker.tenant == "a":
            expected = "42501"  # a prompt of another user
        query = sql.SQL("select * from " + qualified + arguments).format(
            id=world.things[VICTIM].live,
            tenant=VICTIM[0],
            user=VICTIM[1],
            sha256=sha256,
            row=row,
            request=request,
            request_row=request_row,
            secret=secret(*VICTIM),
        )
        with act(attacker.login, attacker.tenant, attacker.user) as conn:
            got = attempt(conn, query)
        if got.code != expected or secret(*VICTIM) in str(got):
            wrong.append(f"{name}: {got}")
    assert wrong == []
