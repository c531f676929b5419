"""purge: one batch of what is due, never what is held."""

from __future__ import annotations

import psycopg
import pytest


@pytest.fixture
def age(db):
    """Make a conversation as old as said, by activity and by creation."""

    def age(conversation_id, activity="0", creation=None):
        db.execute(
            "update convo.conversation"
            " set updated_at = now() - %s::interval, created_at = now() - %s::interval"
            " where conversation_id = %s",
            [activity, creation or activity, conversation_id],
        )

    return age


@pytest.fixture
def rule(service):
    """Set a rule in tenant acme."""

    def rule(retention_class="standard", max_age="30 days", **arguments):
        service.row(
            "set_retention",
            retention_class=retention_class,
            max_age=max_age,
            **arguments,
        )

    return rule


@pytest.fixture
def old(ann, age):
    """Make a conversation of ann's with two messages, 31 days old."""

    def old(**arguments):
        own = ann.create(**arguments)
        ann.say(own, 1, 2)
        age(own, "31 days")
        return own

    return old


def exists(caller, conversation_id):
    return bool(caller.rows("get_conversation", conversation_id=conversation_id))


def snapshot(db):
    """Everything in the tables of the schema, by table."""
    tables = db.execute(
        "select relname from pg_class where relnamespace = 'convo'::regnamespace"
        " and relkind in ('r', 'p') order by relname"
    ).fetchall()
    return {
        table: db.execute(
            f"select t::text from convo.{table} as t order by 1"
        ).fetchall()
        for (table,) in tables
    }


def test_removes_what_is_due(maintainer, ann, rule, old):
    own = old()
    rule()
    row = maintainer.row("purge")

    assert (row["conversations"], row["messages"], row["held"]) == (1, 2, 0)
    assert row["is_dry_run"] is False
    assert row["started_at"] <= row["finished_at"]
    assert not exists(ann, own)


def test_counts_deleted_messages_too(maintainer, ann, rule, old, age):
    own = old()
    ann.row("delete_message", conversation_id=own, seq=1)
    age(own, "31 days")
    rule()

    assert maintainer.row("purge")["messages"] == 2


@pytest.mark.parametrize(
    ("basis", "activity", "creation", "is_due"),
    [
        ("activity", "31 days", "40 days", True),
        ("activity", "29 days", "40 days", False),
        ("activity", "29 days", "29 days", False),
        ("creation", "31 days", "40 days", True),
        ("creation", "29 days", "40 days", True),
        ("creation", "29 days", "29 days", False),
    ],
)
def test_age_counts_from_its_basis(
    maintainer, ann, rule, age, basis, activity, creation, is_due
):
    own = ann.create()
    age(own, activity, creation)
    rule(basis=basis)

    assert maintainer.row("purge")["conversations"] == is_due
    assert exists(ann, own) != is_due


def test_an_append_makes_it_young_again(maintainer, ann, rule, old):
    own = old()
    rule()
    ann.say(own, 1)

    assert maintainer.row("purge")["conversations"] == 0
    assert exists(ann, own)


@pytest.mark.parametrize("function", ["archive_conversation", "unarchive_conversation"])
def test_archiving_changes_nothing_in_what_is_due(maintainer, ann, rule, old, function):
    own = old()
    rule()
    ann.row(function, conversation_id=own)

    assert maintainer.row("purge")["conversations"] == 1


def test_a_class_without_rule_is_kept(maintainer, ann, rule, old):
    short, other = old(retention_class="short"), old(retention_class="other")
    rule("short")

    assert maintainer.row("purge")["conversations"] == 1
    assert not exists(ann, short)
    assert exists(ann, other)


def test_a_tenant_without_rule_is_kept(maintainer, hostile, rule, age):
    own = hostile.create()
    age(own, "10 years")
    rule()

    assert maintainer.row("purge")["conversations"] == 0
    assert exists(hostile, own)


def test_each_tenant_goes_by_its_own_rule(
    maintainer, ann, hostile, rule, hostile_service, age
):
    mine, theirs = ann.create(), hostile.create()
    age(mine, "31 days")
    age(theirs, "31 days")
    rule()
    hostile_service.row("set_retention", retention_class="standard", max_age="1 year")

    assert maintainer.row("purge")["conversations"] == 1
    assert not exists(ann, mine)
    assert exists(hostile, theirs)


def test_one_batch_covers_all_tenants(
    maintainer, ann, hostile, rule, hostile_service, age
):
    mine, theirs = ann.create(), hostile.create()
    age(mine, "31 days")
    age(theirs, "31 days")
    rule()
    hostile_service.row("set_retention", retention_class="standard", max_age="1 day")

    assert maintainer.row("purge")["conversations"] == 2
    assert not exists(ann, mine)
    assert not exists(hostile, theirs)


def test_an_age_of_0_makes_everything_due(maintainer, ann, rule):
    own = ann.create()
    rule(max_age="0")
    ann.conn.execute("select pg_sleep(0.002)")

    assert maintainer.row("purge")["conversations"] == 1
    assert not exists(ann, own)


def test_never_what_is_held_but_counts_it(maintainer, ann, service, rule, old):
    held, free = old(), old()
    service.row("hold_conversation", conversation_id=held, reason="case 7")
    rule()
    row = maintainer.row("purge")

    assert (row["conversations"], row["held"]) == (1, 1)
    assert exists(ann, held)
    assert not exists(ann, free)


def test_a_held_one_that_is_not_due_is_not_counted(maintainer, ann, service, rule):
    own = ann.create()
    service.row("hold_conversation", conversation_id=own, reason="case 7")
    rule()

    assert maintainer.row("purge")["held"] == 0


def test_what_is_released_goes_with_the_next_run(maintainer, ann, service, rule, old):
    own = old()
    rule()
    service.row("hold_conversation", conversation_id=own, reason="case 7")
    maintainer.row("purge")
    service.row("release_conversation", conversation_id=own, reason="closed")

    assert maintainer.row("purge")["conversations"] == 1


def test_a_dry_run_counts_what_would_go_and_changes_nothing(
    maintainer, service, rule, old, db
):
    for _ in range(3):
        old(system_prompt="sesame")
    service.row("hold_conversation", conversation_id=old(), reason="case 7")
    rule()
    before = snapshot(db)
    dry = maintainer.row("purge", is_dry_run=True)

    assert snapshot(db) == before
    assert dry["is_dry_run"] is True
    assert (dry["conversations"], dry["messages"], dry["held"]) == (3, 6, 1)
    run = maintainer.row("purge")
    for name in ("conversations", "messages", "held"):
        assert run[name] == dry[name]


def test_a_dry_run_counts_one_batch(maintainer, rule, old):
    for _ in range(3):
        old()
    rule()

    row = maintainer.row("purge", is_dry_run=True, page_size=2)
    assert row["conversations"] == 2


def test_null_is_neither_a_run_nor_a_dry_run(maintainer, fails):
    with fails("22023", argument="is_dry_run"):
        maintainer.row("purge", is_dry_run=None)


def test_a_batch_is_as_large_as_said_and_takes_the_oldest(maintainer, ann, rule, age):
    own = [ann.create() for _ in range(3)]
    for days, conversation_id in zip((31, 33, 32), own, strict=True):
        age(conversation_id, f"{days} days")
    rule()

    assert maintainer.row("purge", page_size=2)["conversations"] == 2
    assert [exists(ann, conversation_id) for conversation_id in own] == [
        True,
        False,
        False,
    ]


def test_a_batch_over_several_rules_is_as_large_as_said(maintainer, rule, old):
    for name in ("a", "b"):
        for _ in range(2):
            old(retention_class=name)
        rule(name)

    assert maintainer.row("purge", page_size=3)["conversations"] == 3
    assert maintainer.row("purge", page_size=3)["conversations"] == 1


def test_a_batch_of_0_removes_nothing(maintainer, ann, rule, old):
    own = old()
    rule()

    assert maintainer.row("purge", page_size=0)["conversations"] == 0
    assert exists(ann, own)


def test_a_batch_over_1000_is_1000(maintainer, rule, db):
    db.execute(
        "insert into convo.conversation (tenant_id, conversation_id, user_id,"
        " retention_class, created_at, updated_at)"
        " select 'acme', gen_random_uuid(), 'ann', 'standard', '2000-01-01Z',"
        " '2000-01-01Z' from generate_series(1, 1001)"
    )
    rule()

    assert maintainer.row("purge", page_size=5000)["conversations"] == 1000
    assert maintainer.row("purge", page_size=5000)["conversations"] == 1


@pytest.mark.parametrize("page_size", [None, -1])
@pytest.mark.parametrize("is_dry_run", [False, True])
def test_a_null_or_negative_batch_is_refused(maintainer, fails, page_size, is_dry_run):
    with fails("22023", argument="page_size", value=page_size):
        maintainer.row("purge", page_size=page_size, is_dry_run=is_dry_run)


def test_leaves_nothing_but_tombstones(maintainer, ann, rule, old, age, db):
    own = old(system_prompt="sesame")
    ann.row("edit_message", conversation_id=own, seq=1, content="sesame 2")
    ann.row(
        "append_message",
        conversation_id=own,
        role="user",
        content="sesame",
        idempotency_key="k1",
    )
    age(own, "31 days")
    rule()
    maintainer.row("purge")

    left = {
        table
        for table, rows in snapshot(db).items()
        if any(str(own) in text or "sesame" in text for (text,) in rows)
    }
    assert left == {"tombstone"}


def test_a_tombstone_keeps_the_id_from_being_used_again(
    maintainer, ann, ben, rule, old, fails
):
    own = old()
    rule()
    maintainer.row("purge")

    with fails("PC012"):
        ann.create(conversation_id=own)
    with fails("PC013"):
        ben.create(conversation_id=own)
    with fails("PC012"):
        ann.say(own, 1)


def test_collects_prompts_that_nothing_uses_any_more(maintainer, ann, rule, old, db):
    for prompt in ("gone", "gone", "shared"):
        old(system_prompt=prompt)
    young = ann.create(system_prompt="shared")
    rule()
    maintainer.row("purge")

    assert db.execute("select content from convo.prompt").fetchall() == [("shared",)]
    assert ann.get(young)["system_prompt"] == "shared"


def test_collects_the_texts_of_requests(maintainer, ann, rule, age, db):
    for tools in ("gone", "shared"):
        own = ann.create(system_prompt=tools)
        ann.say(own, 1)
        ann.row(
            "prepare_request",
            conversation_id=own,
            format="openai",
            parameters=f'{{"tools": ["{tools}"]}}',
        )
        age(own, "31 days")
    young = ann.create()
    ann.say(young, 1)
    ann.row(
        "prepare_request",
        conversation_id=young,
        format="openai",
        parameters='{"tools": ["shared"]}',
    )
    rule()
    assert maintainer.row("purge")["conversations"] == 2
    rows = db.execute("select content from convo.prompt").fetchall()
    assert rows == [('["shared"]',)]
    assert db.execute("select count(*) from convo.request").fetchone() == (1,)


def test_a_prompt_that_a_held_one_uses_stays(maintainer, ann, service, rule, old):
    held, _ = old(system_prompt="shared"), old(system_prompt="shared")
    service.row("hold_conversation", conversation_id=held, reason="case 7")
    rule()
    maintainer.row("purge")

    assert ann.get(held)["system_prompt"] == "shared"


def test_logs_each_run_by_tenant(
    maintainer, service, ann, hostile, rule, hostile_service, old, age, db
):
    old()
    old()
    theirs = hostile.create()
    age(theirs, "31 days")
    rule()
    hostile_service.row("set_retention", retention_class="standard", max_age="1 day")
    maintainer.row("purge")

    runs = "select tenant_id, conversations, messages from convo.purge_run order by 1"
    assert db.execute(runs).fetchall() == [("acme", 2, 4), ("evil", 1, 0)]
    assert service.conn.execute(runs).fetchall() == [("acme", 2, 4)]


def test_a_run_that_removes_nothing_logs_nothing(maintainer, rule, db):
    rule()
    maintainer.row("purge")

    assert db.execute("select from convo.purge_run").fetchall() == []


def test_rows_that_are_locked_are_left_for_the_next_run(
    maintainer, ann, as_role, rule, old
):
    locked, free = old(), old()
    rule()
    writer = as_role("test_app", "acme", "ann", autocommit=False)
    writer.conn.execute(
        "select from convo.conversation where conversation_id = %s for update", [locked]
    )

    assert maintainer.row("purge")["conversations"] == 1
    assert exists(ann, locked)
    writer.conn.rollback()
    assert maintainer.row("purge")["conversations"] == 1
    assert not exists(ann, free)


def test_a_context_changes_nothing(as_role, rule, old):
    old()
    rule()

    assert as_role("test_maintainer", "evil").row("purge")["conversations"] == 1


@pytest.mark.parametrize("role", ["ann", "service", "reader"])
def test_is_for_maintainers_alone(request, role):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        request.getfixturevalue(role).row("purge")
