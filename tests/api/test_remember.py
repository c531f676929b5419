"""remember: facts about the user of the context, by key, with their versions."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def remember(who, *facts, **options):
    """Remember facts, or (key, value) pairs of them."""
    facts = [
        dict(zip(("key", "value"), fact, strict=True))
        if isinstance(fact, tuple)
        else fact
        for fact in facts
    ]
    return who.rows("remember", facts=json.dumps(facts), **options)


def known(who):
    return {row["key"]: row["value"] for row in who.rows("recall")}


def revisions(db):
    return db.execute(
        "select key, version, value from convo.memory_revision order by 1, 2"
    ).fetchall()


def test_gives_what_is_remembered_in_order_of_keys(ann):
    source = uuid4()
    rows = remember(
        ann, ("b", "sesame"), ("a", "sesame"), source_conversation_id=source
    )

    assert [row["key"] for row in rows] == ["a", "b"]
    for row in rows:
        times = {
            row.pop(f"{name}_at") for name in ("created", "updated", "last_accessed")
        }
        assert all(isinstance(time, datetime) for time in times)
        row.pop("key")
        assert row == {
            "value": "sesame", "version": 1, "source_conversation_id": source,
            "expires_at": None,
        }  # fmt: skip


def test_a_new_value_is_a_new_version_and_the_old_is_kept(ann, db):
    first, second = uuid4(), uuid4()
    (old,) = remember(ann, ("a", "one"), source_conversation_id=first)
    (new,) = remember(ann, ("a", "two"), source_conversation_id=second)

    assert (new["value"], new["version"]) == ("two", 2)
    assert new["created_at"] == old["created_at"]
    assert new["source_conversation_id"] == second
    assert revisions(db) == [("a", 1, "one")]
    (source, written) = db.execute(
        "select source_conversation_id, created_at from convo.memory_revision"
    ).fetchone()
    assert (source, written) == (first, old["updated_at"])


def test_the_same_value_again_changes_nothing(ann, db):
    before = remember(ann, ("a", "one"))

    assert remember(ann, ("a", "one"), source_conversation_id=uuid4()) == before
    assert revisions(db) == []


def test_the_same_value_can_end_at_another_time(ann, db):
    (row,) = remember(
        ann, {"key": "a", "value": "one", "expires_at": "2999-01-02T03:04:05Z"}
    )
    assert row["expires_at"] == datetime(2999, 1, 2, 3, 4, 5, tzinfo=UTC)

    (row,) = remember(ann, ("a", "one"))

    assert (row["expires_at"], row["version"]) == (None, 1)
    assert revisions(db) == []


def test_what_has_expired_is_gone(ann, db):
    soon = datetime.now(UTC) + timedelta(milliseconds=300)
    remember(ann, {"key": "a", "value": "one", "expires_at": soon.isoformat()})
    assert known(ann) == {"a": "one"}
    ann.conn.execute("select pg_sleep(0.35)")
    assert known(ann) == {}

    (row,) = remember(ann, ("a", "two"))

    assert (row["version"], revisions(db)) == (1, [])


def test_facts_without_key_or_value_are_skipped(ann):
    rows = remember(
        ann, {"key": "a"}, {"value": "x"}, {}, ("b", None), (None, "x"), ("", "x"),
        ("c", " \n"), ("\u2003", "x"), ("d", "sesame"), {"expires_at": None},
    )  # fmt: skip

    assert [row["key"] for row in rows] == ["d"]


def test_of_several_with_one_key_the_last_counts(ann, db):
    (row,) = remember(ann, ("a", "one"), ("a", "two"))

    assert (row["value"], row["version"], revisions(db)) == ("two", 1, [])


def test_other_members_do_not_matter_and_numbers_are_texts(ann):
    remember(ann, {"key": 1, "value": 42, "other": [1]}, {"key": "b", "value": True})

    assert known(ann) == {"1": "42", "b": "true"}


def test_what_text_cannot_hold_is_replaced(ann):
    facts = r'[{"key": "a\u0000", "value": "\ud800 \\u0000"}]'
    (row,) = ann.rows("remember", facts=facts)

    assert (row["key"], row["value"]) == ("a\ufffd", "\ufffd \\u0000")


@pytest.mark.parametrize("facts", ["null", "{}", '"x"', "1", None])
def test_facts_are_an_array(ann, facts, fails):
    with fails("22023", argument="facts", reason="not an array"):
        ann.rows("remember", facts=facts)


@pytest.mark.parametrize(
    ("fact", "reason"),
    [
        (None, "not an object"),
        ("sesame", "not an object"),
        ([], "not an object"),
        ({"key": {}, "value": "x"}, "key is not a text"),
        ({"key": "a", "value": ["sesame"]}, "value is not a text"),
        ({"key": "a", "value": "x", "expires_at": 7}, "expires_at is not a time"),
        ({"key": "a", "value": "x", "expires_at": "soon"}, "expires_at is not a time"),
        ({"key": "a", "value": "x", "expires_at": ""}, "expires_at is not a time"),
        ({"key": "a", "value": "x", "expires_at": "infinity"},
         "expires_at is not a time"),
        ({"key": "a", "value": "x", "expires_at": "20000-01-01"},
         "expires_at is not a time"),
        ({"key": "a", "value": "x", "expires_at": "2026-13-01"},
         "expires_at is not a time"),
    ],
)  # fmt: skip
def test_a_shape_that_is_wrong_changes_nothing(ann, fact, reason, fails):
    with fails("22023", argument="facts", index=1, reason=reason):
        ann.rows("remember", facts=json.dumps([{"key": "b", "value": "x"}, fact]))
    assert known(ann) == {}


@pytest.mark.parametrize("fact", [("k" * 256, "x"), ("k", "x" * 8193)])
def test_too_long(ann, fact):
    with pytest.raises(psycopg.errors.CheckViolation):
        remember(ann, fact)


def test_users_and_tenants_know_their_own(ann, ben, hostile, as_role):
    for who in (ann, ben, hostile):
        remember(who, ("a", who.conn.info.user + str(id(who))))

    for who in (ann, ben, hostile):
        assert known(who) == {"a": who.conn.info.user + str(id(who))}
    assert known(as_role("test_service", "acme", "ann")) == known(ann)
    assert known(as_role("test_reader", "acme", "ben")) == known(ben)


@pytest.mark.parametrize("function", ["remember", "recall", "forget", "forget_all"])
def test_a_service_says_for_whom(service, function, fails):
    arguments = {"remember": {"facts": "[]"}, "forget": {"key": "a"}}.get(function, {})
    with fails("PC030", missing="user_id"):
        service.rows(function, **arguments)


def test_a_reader_may_not(as_role):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        remember(as_role("test_reader", "acme", "ann"), ("a", "x"))


def test_writers_at_once_lose_no_version(as_role, db):
    writers = [as_role("test_app", "acme", "ann") for _ in range(4)]

    def write(writer):
        for n in range(10):
            remember(writer, ("b", f"{id(writer)} {n}"), ("a", f"{id(writer)} {n}"))

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, writers))

    for key in "ab":
        (version,) = db.execute(
            "select version from convo.memory where key = %s", (key,)
        ).fetchone()
        kept = [number for name, number, _ in revisions(db) if name == key]
        assert version == 40
        assert kept == list(range(1, 40))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["key", "value", "expires_at", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


def test_any_json_is_remembered_or_refused(ann):
    @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
    @given(JSON | st.lists(st.fixed_dictionaries({"key": JSON, "value": JSON})))
    def run(facts):
        try:
            rows = ann.rows("remember", facts=json.dumps(facts))
        except psycopg.errors.InvalidParameterValue:
            return
        assert {(row["key"], row["value"]) for row in rows} <= {
            (row["key"], row["value"]) for row in ann.rows("recall", page_size=1000)
        }

    run()
