"""Measure convo.estimate_tokens: its errors on conversations not used for fitting.

python bench/tokens/errors.py --data DIR [--dsn DSN]

Prints Markdown tables. Without --dsn it starts a throwaway server and loads
sql/functions/message/estimate_tokens.sql as it is now. Needs quicktok-v1 and PyYAML.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from corpus import Conversation, conversations

from pgconvo import server

FUNCTION = Path(__file__).parents[2] / "sql/functions/message/estimate_tokens.sql"
ROLES = ("convo_app", "convo_service", "convo_reader", "convo_maintainer")
LOOP = """
create function pg_temp.microseconds(content text, calls integer) returns float8
language plpgsql as $$
declare
    started timestamptz := clock_timestamp();
begin
    for run in 1 .. calls loop
        perform convo.estimate_tokens(content);
    end loop;
    return extract(epoch from clock_timestamp() - started) * 1e6 / calls;
end
$$"""


@contextmanager
def connection(dsn: str | None) -> Iterator[psycopg.Connection]:
    """A database with the function: this one, or one of a throwaway server."""
    if dsn:
        with psycopg.connect(dsn, autocommit=True) as conn:
            yield conn
        return
    with server.running() as running, psycopg.connect(running.dsn()) as conn:
        for role in ROLES:
            conn.execute(f"create role {role}".encode())
        conn.execute("create schema convo")
        conn.execute(FUNCTION.read_bytes())
        yield conn


def estimates(conn: psycopg.Connection, texts: list[str]) -> list[int]:
    """The function's answer for each text."""
    rows = conn.execute(
        "select convo.estimate_tokens(t)"
        " from unnest(%s::text[]) with ordinality as u (t, n) order by n",
        (texts,),
    )
    return [row[0] for row in rows]


def print_errors(conn: psycopg.Connection, held_out: list[Conversation]) -> None:
    """Relative errors of whole conversations, by kind and language."""
    groups: dict[tuple[str, str], list[tuple[float, int, int]]] = defaultdict(list)
    for found in held_out:
        true = sum(found.counts)
        error = sum(estimates(conn, found.texts)) / true - 1
        size = sum(map(len, found.texts)), true
        groups[found.kind, found.lang].append((error, *size))
    print("| kind | language | conversations | characters per token | error | bias |")
    print("| --- | --- | --: | --: | --: | --: |")
    for (kind, lang), rows in sorted(groups.items()):
        errors = [row[0] for row in rows]
        ratio = sum(row[1] for row in rows) / sum(row[2] for row in rows)
        error = sum(map(abs, errors)) / len(errors)
        bias = sum(errors) / len(errors)
        numbers = f"{len(rows)} | {ratio:.2f} | {error:.1%} | {bias:+.1%}"
        print(f"| {kind} | {lang} | {numbers} |")


def print_cost(conn: psycopg.Connection, held_out: list[Conversation]) -> None:
    """Time of a call on a warm backend, the best of five loops."""
    conn.execute(LOOP)
    print("\n| text | time |\n| --- | --: |")
    for kind, lang in (
        ("chat", "en"), ("json-results", "en"), ("prose", "ru"), ("prose", "zh"),
    ):  # fmt: skip
        chosen = [c for c in held_out if (c.kind, c.lang) == (kind, lang)]
        text = "\n".join(text for found in chosen for text in found.texts)
        megabyte = (text * (1_000_000 // len(text) + 1)).encode()[:1_000_000]
        for name, sample, calls in (
            ("400 characters", text[:400], 2000),
            ("1 MB", megabyte.decode(errors="ignore"), 5),
        ):
            query = (
                "select min(pg_temp.microseconds(%s, %s)) from generate_series(1, 5)"
            )
            row = conn.execute(query, (sample, calls)).fetchone()
            assert row
            print(f"| {name} of {kind}, {lang} | {row[0]:,.0f} µs |")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    parser.add_argument("--dsn", help="a database where pgconvo is installed")
    arguments = parser.parse_args()
    held_out = [found for found in conversations(arguments.data) if found.held_out]
    with connection(arguments.dsn) as conn:
        print_errors(conn, held_out)
        print_cost(conn, held_out)


if __name__ == "__main__":
    main()
