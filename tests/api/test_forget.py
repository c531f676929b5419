"""forget and forget_all: facts go with all their versions."""

from __future__ import annotations

import psycopg
import pytest

from .test_remember import known, remember, revisions


def test_one_goes_with_its_versions(ann, db):
    for value in ("one", "two", "three"):
        remember(ann, ("a", value), ("b", value))

    assert ann.value("forget", key="a") == 1
    assert known(ann) == {"b": "three"}
    assert {key for key, *_ in revisions(db)} == {"b"}
    assert ann.value("forget", key="a") == 0


@pytest.mark.parametrize("key", ["", None, "x", "A"])
def test_what_is_not_known_is_not_forgotten(ann, key):
    remember(ann, ("a", "x"))

    assert ann.value("forget", key=key) == 0
    assert known(ann) == {"a": "x"}


def test_what_was_forgotten_begins_anew(ann):
    for value in ("one", "two"):
        remember(ann, ("a", value))
    ann.value("forget", key="a")

    (row,) = remember(ann, ("a", "three"))

    assert row["version"] == 1


def test_all_go(ann, ben, db):
    remember(ann, ("a", "one"), ("b", "x"))
    remember(ann, ("a", "two"))
    remember(ben, ("a", "one"))

    assert ann.value("forget_all") == 2
    assert ann.value("forget_all") == 0
    assert (known(ann), known(ben)) == ({}, {"a": "one"})
    assert revisions(db) == []


def test_nobody_forgets_for_others(ann, ben, hostile, as_role):
    remember(ann, ("a", "x"))

    for who in (ben, hostile, as_role("test_service", "evil", "ann")):
        assert who.value("forget", key="a") == 0
        assert who.value("forget_all") == 0
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role("test_reader", "acme", "ann").value("forget", key="a")
    assert as_role("test_service", "acme", "ann").value("forget", key="a") == 1
