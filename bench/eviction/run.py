"""How much of a context stays the same from turn to turn, with and without steps.

    python bench/eviction/run.py [--turns N] [--budget N]

Prints a Markdown table. Providers cache a prompt by its beginning, so the share is of
the bytes of each rendered context that equal the beginning of the one before it. It
starts a server of its own in the temporary folder. The chat is made up by a fixed rule.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from itertools import takewhile
from uuid import UUID

import psycopg

from pgconvo import Client, server
from pgconvo.migrate import migrate

FILL = 3  # nothing is counted before so many budgets have been written
WORDS = ("the", "of", "and", "to", "in", "is", "you", "that", "was", "for", "with")


@dataclass
class Result:
    """What one policy did, over the turns after the budget was full."""

    turns: int = 0
    moves: int = 0
    tokens: int = 0
    bytes: int = 0
    kept_bytes: int = 0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--budget", type=int, default=8000)
    options = parser.parse_args()
    steps = [0, *(options.budget // part for part in (16, 8, 4, 2))]
    results = measure(steps, options.turns, options.budget)
    if not results[0].turns:
        parser.error(f"so few turns never fill the budget {FILL} times")
    print("| step_tokens | first message moves | tokens sent | bytes that stay |")
    print("| --: | --: | --: | --: |")
    for step, result in results.items():
        print(
            f"| {step:,} | {result.moves / result.turns:.1%} of turns"
            f" | {result.tokens / result.turns:,.0f}"
            f" | {result.kept_bytes / result.bytes:.1%} |"
        )


def measure(steps: list[int], turns: int, budget: int) -> dict[int, Result]:
    """Write one chat and look at it with each step after each turn."""
    results = {step: Result() for step in steps}
    before: dict[int, tuple[int | None, bytes]] = {}
    with (
        server.running() as running,
        psycopg.connect(running.dsn(), autocommit=True) as conn,
    ):
        migrate(conn)
        client = Client(conn)
        conn.execute("set convo.tenant_id = 'bench'; set convo.user_id = 'bench'")
        for step in steps:
            client.set_policy(
                f"step {step}", "token_budget", token_budget=budget, step_tokens=step
            )
        conversation_id = client.create_conversation(system_prompt=text(500))
        written = 0
        for _ in range(turns):
            written += append_turn(client, conversation_id)
            for step, result in results.items():
                first, tokens, body = look(client, conversation_id, f"step {step}")
                if step in before and written > FILL * budget:
                    count(result, before[step], first, tokens, body)
                before[step] = first, body
    return results


def append_turn(client: Client, conversation_id: UUID) -> int:
    """Append a question and an answer, and return their tokens."""
    sizes = {"user": (20, 400), "assistant": (100, 2000)}
    return sum(
        client.append_message(conversation_id, role, text(random.randint(*size))).tokens
        for role, size in sizes.items()
    )


def text(size: int) -> str:
    """Return random words of about so many characters."""
    return " ".join(random.choices(WORDS, k=size // 4))


def look(
    client: Client, conversation_id: UUID, policy: str
) -> tuple[int | None, int, bytes]:
    """Return the first message's seq, the tokens, and the request's bytes."""
    items = client.get_context(conversation_id, policy)
    first = next(item.seq for item in items if item.kind == "message")
    body = client.render_context(conversation_id, "openai", policy)
    return first, items[-1].running_tokens, body.encode()


def count(
    result: Result,
    before: tuple[int | None, bytes],
    first: int | None,
    tokens: int,
    body: bytes,
) -> None:
    """Add one turn to the result."""
    result.turns += 1
    result.moves += first != before[0]
    result.tokens += tokens
    result.bytes += len(body)
    pairs = zip(before[1], body, strict=False)
    same = takewhile(lambda pair: pair[0] == pair[1], pairs)
    result.kept_bytes += sum(1 for _ in same)


if __name__ == "__main__":
    random.seed(1)
    main()
