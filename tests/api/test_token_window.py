"""token_window: the newest messages that fit a budget, groups whole."""

from __future__ import annotations

from uuid import uuid4

import pytest


def window(caller, conversation_id, token_budget):
    return [
        (row["seq"], row["running_tokens"])
        for row in caller.window(conversation_id, token_budget)
    ]


@pytest.fixture
def tools(ann, conversation_id):
    """A user message, parallel calls, their results around a user message, an answer.

    The group of calls costs 2 + 8 + 32 tokens.
    """
    ann.append(
        conversation_id,
        [
            {"role": "user", "content": "sesame"},
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": name, "function": {"name": "f", "arguments": "{}"}}
                    for name in "ab"
                ],
            },
            {"role": "tool", "tool_call_id": "b", "content": "sesame"},
            {"role": "user", "content": "sesame"},
            {"role": "tool", "tool_call_id": "a", "content": "sesame"},
            {"role": "assistant", "content": "sesame"},
        ],
        tokens=[1, 2, 8, 16, 32, 64],
    )
    return conversation_id


def test_of_7_messages_a_budget_of_150_keeps_the_last_two(ann, conversation_id):
    ann.say(conversation_id, 30, 40, 20, 60, 75, 8, 90)

    assert window(ann, conversation_id, 150) == [(6, 98), (7, 90)]


def test_of_six_turns_a_budget_of_1460_keeps_the_newest_four(ann, conversation_id):
    ann.say(conversation_id, 310, 295, 402, 388, 517, 64)

    assert window(ann, conversation_id, 1460) == [
        (3, 1371),
        (4, 969),
        (5, 581),
        (6, 64),
    ]


def test_gives_the_columns_in_order(ann, conversation_id):
    ann.say(conversation_id, 5)

    assert ann.window(conversation_id, 5) == [
        {
            "seq": 1,
            "role": "user",
            "content": "sesame 1",
            "tokens": 5,
            "running_tokens": 5,
        }
    ]
    assert list(ann.window(conversation_id, 5)[0]) == [
        "seq",
        "role",
        "content",
        "tokens",
        "running_tokens",
    ]


def test_a_total_equal_to_the_budget_fits(ann, conversation_id):
    ann.say(conversation_id, 5, 5)

    assert window(ann, conversation_id, 10) == [(1, 10), (2, 5)]
    assert window(ann, conversation_id, 9) == [(2, 5)]


def test_stops_at_the_first_that_does_not_fit(ann, conversation_id):
    ann.say(conversation_id, 1, 100, 1)

    assert window(ann, conversation_id, 50) == [(3, 1)]


def test_a_newest_message_over_the_budget_leaves_nothing(ann, conversation_id):
    ann.say(conversation_id, 1, 100)

    assert window(ann, conversation_id, 50) == []


def test_messages_of_0_tokens_stay_with_what_is_after_them(ann, conversation_id):
    ann.say(conversation_id, 5, 0, 0, 5)

    assert window(ann, conversation_id, 5) == [(2, 5), (3, 5), (4, 5)]


def test_system_messages_are_neither_shown_nor_counted(ann, conversation_id):
    ann.say(conversation_id, 5)
    ann.say(conversation_id, 1000, role="system")
    ann.say(conversation_id, 5)

    assert window(ann, conversation_id, 10) == [(1, 10), (3, 5)]


def test_deleted_messages_are_neither_shown_nor_counted(ann, conversation_id):
    ann.say(conversation_id, 5, 1000, 5)
    ann.row("delete_message", conversation_id=conversation_id, seq=2)

    assert window(ann, conversation_id, 10) == [(1, 10), (3, 5)]


def test_an_edit_counts_with_its_new_tokens(ann, conversation_id):
    ann.say(conversation_id, 5, 5)
    ann.row(
        "edit_message", conversation_id=conversation_id, seq=2, content="x", tokens=8
    )

    assert window(ann, conversation_id, 10) == [(2, 8)]


def test_a_group_has_one_total_and_stands_in_order(ann, tools):
    assert window(ann, tools, 1000) == [
        (1, 123),
        (2, 122),
        (3, 122),
        (5, 122),
        (4, 80),
        (6, 64),
    ]


@pytest.mark.parametrize("budget", range(0, 130))
def test_a_group_is_kept_or_dropped_whole_at_every_budget(ann, tools, budget):
    groups = [(123, [1]), (122, [2, 3, 5]), (80, [4]), (64, [6])]
    expected = [seq for total, seqs in groups if total <= budget for seq in seqs]

    assert [seq for seq, _ in window(ann, tools, budget)] == expected


def test_a_group_over_the_budget_ends_the_window(ann, conversation_id, tools):
    assert window(ann, tools, 121) == [(4, 80), (6, 64)]


def test_totals_go_beyond_an_integer(ann, conversation_id):
    ann.say(conversation_id, 2147483647, 2147483647)

    assert window(ann, conversation_id, 2147483647) == [(2, 2147483647)]


def test_a_budget_of_0_gives_no_rows(ann, tools):
    assert window(ann, tools, 0) == []


@pytest.mark.parametrize("budget", [None, -1])
def test_a_null_or_negative_budget_is_refused(ann, tools, fails, budget):
    with fails("22023", argument="token_budget", value=budget):
        window(ann, tools, budget)


@pytest.mark.parametrize("budget", [None, -1])
def test_a_budget_is_refused_where_there_is_nothing_too(ann, fails, budget):
    with fails("22023", argument="token_budget"):
        window(ann, uuid4(), budget)


def test_an_unknown_id_gives_no_rows(ann):
    assert window(ann, uuid4(), 100) == []


def test_outsiders_get_no_rows(outsider, tools):
    assert window(outsider, tools, 1000) == []


@pytest.mark.parametrize("role", ["service", "reader"])
def test_the_tenants_service_and_reader_get_them(request, role, tools):
    assert window(request.getfixturevalue(role), tools, 64) == [(6, 64)]


def test_needs_a_context(unknown, tools, fails):
    with fails("PC030"):
        window(unknown, tools, 100)
