"""Recalled messages in a context: from before the window, each once, groups whole."""

from __future__ import annotations

import pytest

from .test_get_context import USER, calls, result


@pytest.fixture
def recalls(db):
    """Say what is recalled: `recalls(3, 1)`, best first."""

    def recalls(*seqs):
        db.execute(
            "create or replace function convo._recall_messages("
            " conversation convo.conversation, policy convo.policy_record,"
            " before_seq integer) returns integer[] language sql stable return array("
            " select s from unnest("
            f"'{{{','.join(map(str, seqs))}}}'::integer[]"
            ") with ordinality as r (s, n)"
            " where s < _recall_messages.before_seq order by n)"
        )

    return recalls


@pytest.fixture
def policy(service):
    """Set the default policy: hybrid, at most 10 recalled messages."""

    def policy(**options):
        service.row(
            "set_policy",
            **{"name": "default", "strategy": "hybrid", "recall_limit": 10, **options},
        )

    policy()
    return policy


@pytest.fixture
def ten(ann, conversation_id, policy):
    """Ten messages of 10 tokens."""
    ann.say(conversation_id, *[10] * 10)
    return conversation_id


def shown(who, conversation_id, token_budget):
    """The seqs recalled, and those of the window."""
    items = who.context(conversation_id, token_budget=token_budget)
    return tuple(
        [item["seq"] for item in items if item["kind"] == kind]
        for kind in ("recalled", "message")
    )


def test_they_stand_before_the_window_in_order(ann, ten, recalls):
    recalls(3, 1)

    assert shown(ann, ten, 60) == ([1, 3], [7, 8, 9, 10])


def test_they_come_off_the_budget(ann, ten, recalls):
    """The window gets what they leave."""
    recalls(3)
    assert shown(ann, ten, 60) == ([3], [6, 7, 8, 9, 10])
    recalls()
    assert shown(ann, ten, 60) == ([], [5, 6, 7, 8, 9, 10])


def test_what_the_window_holds_is_not_recalled(ann, ten, recalls):
    recalls(10, 7, 4, 2)

    assert shown(ann, ten, 60) == ([2, 4], [7, 8, 9, 10])


def test_the_best_come_first_and_take_half_of_what_is_left(ann, ten, recalls):
    recalls(4, 1, 3, 2)

    # 50 beside the newest turn: 25 for them.
    assert shown(ann, ten, 60) == ([1, 4], [7, 8, 9, 10])
    assert shown(ann, ten, 20) == ([], [9, 10])
    assert shown(ann, ten, 30) == ([4], [9, 10])


def test_a_large_one_is_left_out_for_the_next(ann, conversation_id, policy, recalls):
    ann.say(conversation_id, 100, *[10] * 9)
    recalls(1, 2)

    assert shown(ann, conversation_id, 60) == ([2], [6, 7, 8, 9, 10])


def test_groups_are_whole_and_sound(ann, conversation_id, recalls, policy):
    ann.append(
        conversation_id,
        [
            USER, calls("a", "b"), result("a"), USER, result("b"),
            calls("c"), result("x"), *[USER] * 8,
        ],
        tokens=[10] * 15,
    )  # fmt: skip
    recalls(3, 6, 7)

    recalled, window = shown(ann, conversation_id, 100)

    assert recalled == [2, 3, 5]
    assert window == list(range(9, 16))


def test_deleted_and_system_messages_are_not_recalled(
    ann, conversation_id, recalls, policy
):
    ann.say(conversation_id, 1, role="system")
    ann.say(conversation_id, *[10] * 9)
    ann.row("delete_message", conversation_id=conversation_id, seq=2)
    recalls(1, 2, 3)

    assert shown(ann, conversation_id, 60)[0] == [3]


def test_what_a_summary_covers_can_be_recalled(ann, ten, recalls):
    ann.summarise(ten, 5, tokens=10)
    recalls(2)

    items = ann.context(ten)

    assert [(i["kind"], i["seq"]) for i in items[:4]] == [
        ("summary", 5), ("summary", 5), ("recalled", 2), ("message", 6),
    ]  # fmt: skip


def test_the_newest_user_message_in_front_of_the_window_comes_once(
    ann, conversation_id, recalls, policy
):
    ann.say(conversation_id, *[10] * 3)
    ann.say(conversation_id, *[10] * 7, role="assistant")
    recalls(3, 1)

    assert shown(ann, conversation_id, 60) == ([1], [3, 7, 8, 9, 10])


@pytest.mark.parametrize("pin_last_user", [True, False])
def test_they_never_push_out_the_newest_turn(
    ann, conversation_id, recalls, policy, pin_last_user
):
    """So a context that fits without them is never PC020 with them."""
    policy(pin_last_user=pin_last_user)
    ann.say(conversation_id, *[10] * 5)
    ann.say(conversation_id, *[10] * 4, role="assistant")
    recalls(1, 2)

    assert shown(ann, conversation_id, 50) == ([], [5, 6, 7, 8, 9])
    assert shown(ann, conversation_id, 70) == ([1], [4, 5, 6, 7, 8, 9])


def test_eviction_in_steps_goes_on(ann, conversation_id, recalls, policy):
    policy(token_budget=60, step_tokens=20, pin_last_user=False)
    recalls(1)
    for count in range(1, 40):
        ann.say(conversation_id, 10)
        recalled, window = shown(ann, conversation_id, 60)
        assert recalled == ([1] if count > 6 else [])
        assert window[-1] == count
        assert len(window) >= 2 or count == 1


def test_message_overhead_counts(ann, ten, recalls, policy):
    policy(message_overhead=5)
    recalls(1, 2)

    assert shown(ann, ten, 90) == ([1, 2], [7, 8, 9, 10])


@pytest.mark.parametrize(
    "options", [{"recall_limit": 0}, {"strategy": "summary"}, {"strategy": "full"}]
)
def test_only_hybrid_recalls(ann, ten, recalls, policy, options):
    policy(**options)
    recalls(1)

    assert shown(ann, ten, 100)[0] == []


def test_each_message_is_explained_once(ann, ten, recalls):
    ann.summarise(ten, 2, tokens=1)
    recalls(1, 3)

    rows = ann.rows("explain_context", conversation_id=ten, token_budget=67)

    assert [(r["kind"], r["seq"], r["reason"]) for r in rows[2:]] == [
        ("recalled", 1, "kept"), ("recalled", 3, "kept"), ("message", 2, "summarised"),
        *[("message", n, "over the budget") for n in (4, 5, 6)],
        *[("message", n, "kept") for n in (7, 8, 9, 10)],
    ]  # fmt: skip
    assert rows[-1]["running_tokens"] == 67
