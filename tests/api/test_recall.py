"""recall: what is known about the user of the context, last accessed first."""

from __future__ import annotations

import pytest

from .test_remember import remember


def keys(who, **options):
    return [row["key"] for row in who.rows("recall", **options)]


def touch(db, *names, at="clock_timestamp()"):
    for name in names:
        db.execute(
            f"update convo.memory set last_accessed_at = {at} where key = %s", (name,)
        )


def test_last_accessed_first(ann, db):
    remember(ann, *[(key, "x") for key in "abcd"])
    touch(db, "c", at="now() + interval '2 s'")
    touch(db, "a", at="now() + interval '1 s'")
    touch(db, "b", "d", at="'2001-01-01'")

    assert keys(ann) == ["c", "a", "b", "d"]


def test_it_is_no_access(ann, db):
    remember(ann, ("a", "x"))
    touch(db, "a", at="'2001-01-01'")

    (row,) = ann.rows("recall")

    assert ann.rows("recall") == [row]


def test_page_size(ann, fails):
    remember(ann, *[(f"{n}", "x") for n in range(20)])

    assert len(keys(ann)) == 15
    assert [len(keys(ann, page_size=n)) for n in (0, 7, 5000)] == [0, 7, 20]
    for size in (-1, None):
        with fails("22023", argument="page_size"):
            keys(ann, page_size=size)


def test_nothing_is_known_of_others(ann, ben, hostile):
    remember(ann, ("a", "x"))

    assert keys(ben) == keys(hostile) == []


def test_who_does_not_say_who_is_asking(unknown, fails):
    with fails("PC030"):
        unknown.rows("recall")


@pytest.mark.parametrize(
    ("age", "is_written"), [("59 seconds", False), ("61 seconds", True)]
)
def test_an_access_is_noted_once_a_minute(ann, db, age, is_written):
    remember(ann, ("a", "x"), ("b", "x"))
    touch(db, "a", "b", at=f"now() - interval '{age}'")
    before = {row["key"]: row["last_accessed_at"] for row in ann.rows("recall")}

    ann.conn.execute("select convo._touch_memories('acme', 'ann', '{a,x}')")

    after = {row["key"]: row["last_accessed_at"] for row in ann.rows("recall")}
    assert (after["a"] > before["a"]) == is_written
    assert after["b"] == before["b"]
