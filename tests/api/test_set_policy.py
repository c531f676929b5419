"""set_policy, get_policy, list_policies, delete_policy: a tenant's context policies."""

from __future__ import annotations

import psycopg
import pytest

DEFAULTS = {
    "strategy": "summary",
    "token_budget": 8000,
    "message_limit": None,
    "step_tokens": 0,
    "message_overhead": 0,
    "start_on_user": True,
    "pin_last_user": True,
    "open_calls": "drop",
    "summary_placement": "exchange",
    "summary_threshold": 20000,
    "summary_share": pytest.approx(0.8),
    "memory_limit": 15,
    "recall_limit": 0,
}
OTHERS = {
    "strategy": "last_n",
    "token_budget": 100,
    "message_limit": 5,
    "step_tokens": 50,
    "message_overhead": 4,
    "start_on_user": False,
    "pin_last_user": False,
    "open_calls": "keep",
    "summary_placement": "system",
    "summary_threshold": 1,
    "summary_share": "1",  # psycopg sends a float as double precision
    "memory_limit": 0,
    "recall_limit": 3,
}


def names(caller):
    return [row["name"] for row in caller.rows("list_policies")]


def test_gives_the_policy_with_its_defaults(service):
    assert service.row("set_policy", name="p") == {"name": "p", **DEFAULTS}


def test_gives_what_is_given(service):
    row = service.row("set_policy", name="p", **OTHERS)

    assert row == {"name": "p", **OTHERS, "summary_share": 1.0}
    assert service.row("get_policy", name="p") == row


def test_again_sets_it_whole(service):
    service.row("set_policy", name="p", **OTHERS)
    service.row("set_policy", name="p")

    assert service.rows("list_policies") == [{"name": "p", **DEFAULTS}]


def test_they_are_listed_by_name(service):
    assert names(service) == []
    for name in ("b", "default", "a"):
        service.row("set_policy", name=name)

    assert names(service) == ["a", "b", "default"]


def test_deleting_says_whether_there_was_one(service):
    service.row("set_policy", name="p")

    assert service.value("delete_policy", name="p") is True
    assert service.value("delete_policy", name="p") is False
    assert service.rows("get_policy", name="p") == []


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("name", None), ("name", ""), ("name", "x" * 64),
        ("strategy", None), ("strategy", ""), ("strategy", "sesame"),
        ("token_budget", None), ("token_budget", 0), ("token_budget", -1),
        ("message_limit", 0), ("message_limit", -1),
        ("step_tokens", None), ("step_tokens", -1), ("step_tokens", 4001),
        ("message_overhead", None), ("message_overhead", -1),
        ("start_on_user", None), ("pin_last_user", None),
        ("open_calls", None), ("open_calls", "sesame"),
        ("summary_placement", None), ("summary_placement", "sesame"),
        ("summary_threshold", None), ("summary_threshold", 0),
        ("summary_share", None), ("summary_share", 0), ("summary_share", "1.01"),
        ("summary_share", "nan"),
        ("memory_limit", None), ("memory_limit", -1),
        ("recall_limit", None), ("recall_limit", -1),
    ],
)  # fmt: skip
def test_a_bad_value_is_an_invalid_argument(service, fails, argument, value):
    with fails("22023", argument=argument):
        service.row("set_policy", **{"name": "p", argument: value})
    assert names(service) == []


@pytest.mark.parametrize(("budget", "most"), [(8000, 4000), (101, 50), (1, 0)])
def test_a_step_is_at_most_half_the_budget(service, fails, budget, most):
    budgets = {"name": "p", "token_budget": budget}
    service.row("set_policy", **budgets, step_tokens=most)

    with fails("22023", argument="step_tokens"):
        service.row("set_policy", **budgets, step_tokens=most + 1)


def test_last_n_needs_its_number(service, fails):
    with fails("22023", argument="message_limit"):
        service.row("set_policy", name="p", strategy="last_n")


def test_each_tenant_has_its_own(service, hostile_service):
    service.row("set_policy", name="p")
    hostile_service.row("set_policy", name="p", **OTHERS)

    assert service.row("get_policy", name="p") == {"name": "p", **DEFAULTS}
    assert hostile_service.value("delete_policy", name="p") is True
    assert names(service) == ["p"]


@pytest.mark.parametrize("who", ["ann", "reader"])
def test_who_only_reads_them(request, service, who):
    caller = request.getfixturevalue(who)
    service.row("set_policy", name="p")

    assert names(caller) == ["p"]
    assert caller.row("get_policy", name="p") == {"name": "p", **DEFAULTS}
    for function in ("set_policy", "delete_policy"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            caller.rows(function, name="p")


@pytest.mark.parametrize("function", ["get_policy", "list_policies"])
def test_without_a_tenant_it_says_so(unknown, fails, function):
    arguments = {"name": "p"} if function == "get_policy" else {}
    with fails("PC030"):
        unknown.rows(function, **arguments)
