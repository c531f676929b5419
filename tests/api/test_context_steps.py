"""Eviction in steps: the beginning of a context stays the same for many turns."""

from __future__ import annotations

import random

import pytest

TURNS, BUDGET = 200, 2000


@pytest.fixture
def look(ann, service, conversation_id):
    """Append a turn and return first seq and total of the context of each policy."""
    rng = random.Random(1)

    def look(*steps):
        for step in steps:
            service.row(
                "set_policy", name=f"{step}", strategy="token_budget",
                token_budget=BUDGET, step_tokens=step,
            )  # fmt: skip
        written = 0
        for _ in range(TURNS):
            sizes = rng.randint(5, 60), rng.randint(20, 300)
            for role, tokens in zip(("user", "assistant"), sizes, strict=True):
                ann.say(conversation_id, tokens, role=role)
            written += sum(sizes)
            contexts = [
                ann.context(conversation_id, policy=f"{step}") for step in steps
            ]
            yield (
                written,
                [(items[0]["seq"], items[-1]["running_tokens"]) for items in contexts],
            )

    return look


def test_the_first_message_changes_at_most_once_per_step(look):
    steps = (0, 250, 1000)
    changes = dict.fromkeys(steps, 0)
    before: dict[int, int] = {}
    for written, contexts in look(*steps):
        for step, (first, total) in zip(steps, contexts, strict=True):
            assert total <= BUDGET
            if step in before and first != before[step]:
                changes[step] += 1
            if written > BUDGET:
                assert total > BUDGET - step - 360  # no more than a step and a turn
            before[step] = first
        for step in (250, 1000):
            evicted = max(0, written - BUDGET)
            assert changes[step] <= -(-evicted // step)

    assert written > 10 * BUDGET
    assert changes[1000] < changes[250] < changes[0]
    assert changes[1000] * 3 < changes[0]


def test_steps_count_from_the_last_summary(ann, look, conversation_id, service):
    """What was evicted before is covered by it, so the window starts anew."""
    *_, (_, [(before, _)]) = look(1000)
    service.row("set_policy", name="1000", token_budget=BUDGET, step_tokens=1000)
    ann.summarise(conversation_id, 2 * TURNS - 3)

    items = ann.context(conversation_id, policy="1000")

    assert before < 2 * TURNS - 2
    assert [item["seq"] for item in items if item["kind"] == "message"] == [
        2 * TURNS - 1, 2 * TURNS,
    ]  # fmt: skip
