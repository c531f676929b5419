"""What the functions cost, against the least that SQL can do for the same result.

    python bench/core/run.py [--dsn DSN] [--quick]

Prints Markdown. Without --dsn it starts a server of its own in the temporary folder,
with fsync on; with it, it makes a database there and drops it again (as superuser).
All variants of a table run in turns, and each number is the median of its turns.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgconvo import server
from pgconvo.migrate import migrate

DATABASE = "pgconvo_bench"
LOGINS = {
    "bench_app": "login in role convo_app",
    "bench_bypass": "login bypassrls in role convo_app",
    "bench_maintainer": "login in role convo_maintainer",
}

# Each read with the rows it returns: a message has 100 tokens.
WINDOW, LAST = 45, 20
NAIVE = "sum of the whole conversation, then filter"
PLACE = "m.tenant_id = 'bench' and m.conversation_id = $1"
READS = {
    "floor of token_window": (
        "select m.seq, m.role, m.content, m.tokens from convo.message as m"
        f" where {PLACE} and m.seq >= $2 order by m.seq",
        WINDOW,
    ),
    "token_window": (
        "select seq, role, content, tokens from convo.token_window($1, $2)",
        WINDOW,
    ),
    NAIVE: (
        "select w.seq, w.role, w.content, w.tokens from ("
        "select m.*, sum(m.tokens) over (order by m.seq desc) as running_tokens"
        f" from convo.message as m where {PLACE} and m.deleted_at is null"
        " and m.role <> 'system') as w where w.running_tokens <= $2 order by w.seq",
        WINDOW,
    ),
    "floor of last_messages": (
        "select m.seq, m.role, m.content, m.tokens, m.is_estimated, m.created_at,"
        " m.revision, m.model, m.payload, m.format, m.metadata, m.group_seq,"
        f" m.deleted_at from convo.message as m where {PLACE} and m.seq >= $2"
        " order by m.seq",
        LAST,
    ),
    "last_messages": ("select * from convo.last_messages($1, $2)", LAST),
}
FLOORS = {
    "token_window": "floor of token_window",
    NAIVE: "floor of token_window",
    "last_messages": "floor of last_messages",
}

Connection = psycopg.Connection[tuple[object, ...]]
Name = TypeVar("Name")


def interleave(
    variants: Mapping[Name, Callable[[], float]], rounds: int
) -> dict[Name, float]:
    """Run all variants in turns. Return each one's median."""
    for run in variants.values():
        run()
    turns = [{name: run() for name, run in variants.items()} for _ in range(rounds)]
    return {name: statistics.median(turn[name] for turn in turns) for name in variants}


def table(title: str, head: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n## {title}\n")
    for row in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


def against(value: float, base: float, unit: str = "us") -> str:
    """Write a number, and what it is beside the base."""
    return f"{value:,.0f} {unit} ({value / base:.2f})"


class Bench:
    """The database with its logins, and the tables of the report."""

    def __init__(self, dsn: str, quick: bool) -> None:
        self.dsn = dsn
        self.quick = quick
        self.admin: Connection = psycopg.connect(dsn, autocommit=True)
        self.app = self.connect("bench_app")
        self.bypass = self.connect("bench_bypass")
        self.maintainer = self.connect("bench_maintainer")
        self.prepared: dict[Connection, set[bytes]] = {}
        self.rounds = 21 if quick else 41

    def connect(self, login: str) -> Connection:
        """Connect as a login that acts for one user."""
        conn: Connection = psycopg.connect(
            make_conninfo(self.dsn, user=login), autocommit=True
        )
        for name, value in {
            "convo.tenant_id": "bench",
            "convo.user_id": "ann",
            "plan_cache_mode": "force_generic_plan",
            "random_page_cost": "1.1",
        }.items():
            conn.execute("select set_config(%s, %s, false)", (name, value))
        return conn

    def read(
        self, conn: Connection, name: str, size: int, times: int
    ) -> Callable[[], float]:
        """Return a run of a prepared read: microseconds a call, the round trip too."""
        query, rows = READS[name]
        if name.startswith("floor"):
            argument = size - rows + 1
        else:
            argument = rows if name == "last_messages" else rows * 100
        values = [str(UUID(int=size)).encode(), str(argument).encode()]
        statement = name.encode()
        if statement not in self.prepared.setdefault(conn, set()):
            conn.pgconn.prepare(statement, query.encode())
            self.prepared[conn].add(statement)

        def run() -> float:
            started = time.perf_counter()
            for _ in range(times):
                result = conn.pgconn.exec_prepared(statement, values)
            elapsed = time.perf_counter() - started
            assert result.ntuples == rows, result.error_message
            return elapsed * 1e6 / times

        return run

    @staticmethod
    def number(conn: Connection, query: str, arguments: tuple[object, ...]) -> float:
        """Return the one number that a query gives."""
        row = conn.execute(query, arguments).fetchone()
        assert row is not None
        return float(str(row[0]))

    def run(self) -> None:
        """Print the whole report."""
        row = self.admin.execute("show server_version").fetchone()
        assert row is not None
        print(f"PostgreSQL {row[0]}, medians of {self.rounds} turns.")
        self.windows()
        self.plans()
        self.appends()
        self.batches()
        self.row_security()
        self.context()
        self.purge()

    def windows(self) -> None:
        """Windows and last messages by size of the conversation."""
        sizes = [100, 1_000, 10_000, 100_000] + ([] if self.quick else [1_000_000])
        for size in sizes:
            self.admin.execute("call bench.make_conversations(1, %s, %s)", (size, size))
        self.admin.execute("vacuum analyze")
        naive = {
            (NAIVE, size): self.read(self.app, NAIVE, size, 1 + 20_000 // size)
            for size in sizes
        }
        found = interleave(naive, 3)
        reads = {
            (name, size): self.read(self.app, name, size, 100)
            for size in sizes
            for name in READS
            if name != NAIVE
        }
        found |= interleave(reads, self.rounds)
        rows = []
        for name in READS:
            floor = FLOORS.get(name, name)
            rows.append(
                [
                    name,
                    *(against(found[name, size], found[floor, size]) for size in sizes),
                ]
            )
        table(
            "Prepared reads of 45 and of 20 messages, by size of the conversation "
            "(in brackets: times the floor, a range of seq that returns the same rows)",
            ["", *(f"{size:,}" for size in sizes)],
            rows,
        )

    def plans(self) -> None:
        """What planning adds for a caller that doesn't prepare."""
        self.app.execute("set plan_cache_mode = force_custom_plan")
        runs = {
            name: self.read(self.app, name, 10_000, 50)
            for name in (*FLOORS, *FLOORS.values())
            if name != NAIVE
        }
        found = interleave(runs, self.rounds)
        self.app.execute("set plan_cache_mode = force_generic_plan")
        table(
            "Reads that are planned anew for each call (in brackets: times the floor)",
            ["", "floor", "function"],
            [
                [name, f"{found[floor]:,.0f} us", against(found[name], found[floor])]
                for name, floor in FLOORS.items()
                if name in found
            ],
        )

    def append(self, conn: Connection, variant: str) -> Callable[[], float]:
        """Return a run of 100 appends, to a conversation of its own."""
        row = conn.execute("select convo.create_conversation()").fetchone()
        conversation = row[0] if row else None

        def run() -> float:
            self.admin.execute("delete from convo.idempotency_key")
            query = "call bench.append(%s, %s, 100, null)"
            return self.number(conn, query, (variant, conversation))

        return run

    def appends(self) -> None:
        """One message a transaction."""
        variants = [
            "update and insert",
            "insert alone",
            "append_message",
            "append_message, estimated",
            "append_message with a key",
        ]
        found = {}
        for mode in ("on", "off"):
            self.app.execute(f"set synchronous_commit = {mode}")
            runs = {name: self.append(self.app, name) for name in variants}
            found[mode] = interleave(runs, self.rounds)
        table(
            "Appends (in brackets: times the first line)",
            ["", "synced commits", "not synced"],
            [
                [name, *(against(f[name], f[variants[0]]) for f in found.values())]
                for name in variants
            ],
        )

    def batches(self) -> None:
        """append_messages against COPY, as a client sees them."""
        rows = []
        for size in (100, 1000):
            batch = [
                {"role": ("user", "assistant")[n % 2], "content": "some text " * 40}
                for n in range(size)
            ]
            runs = {
                "COPY": self.copy(batch),
                "tokens given": self.append_batch(batch, [100] * size),
                "estimated": self.append_batch(batch, None),
            }
            found = interleave(runs, 5)
            rows.append(
                [
                    f"{size:,} messages",
                    *(against(value, found["COPY"]) for value in found.values()),
                ]
            )
        table(
            "append_messages (in brackets: times COPY into the same table, which needs "
            "a role that bypasses row security)",
            ["", "COPY", "tokens given", "tokens estimated"],
            rows,
        )

    def copy(self, batch: list[dict[str, str]]) -> Callable[[], float]:
        """Return a run that copies the batch to the end of a new conversation."""
        columns = (
            "tenant_id, conversation_id, seq, user_id, role, content, payload, format,"
            " tokens, is_estimated, is_empty, group_seq, created_at"
        )

        def run() -> float:
            row = self.bypass.execute("select convo.create_conversation()").fetchone()
            made = row[0] if row else None
            rows = [
                (
                    *("bench", made, seq, "ann", message["role"], message["content"]),
                    *(json.dumps(message), "openai", 100, False, False, seq, "now"),
                )
                for seq, message in enumerate(batch, 1)
            ]
            started = time.perf_counter()
            with (
                self.bypass.cursor() as cursor,
                cursor.copy(f"copy convo.message ({columns}) from stdin") as copy,
            ):
                for values in rows:
                    copy.write_row(values)
            return (time.perf_counter() - started) * 1e6

        return run

    def append_batch(
        self, batch: list[dict[str, str]], tokens: list[int] | None
    ) -> Callable[[], float]:
        """Return a run of append_messages to a new conversation."""
        messages = json.dumps(batch)
        query = "select seq from convo.append_messages(%s, %s::json, tokens => %s)"

        def run() -> float:
            row = self.app.execute("select convo.create_conversation()").fetchone()
            made = row[0] if row else None
            started = time.perf_counter()
            self.app.execute(query, (made, messages, tokens)).fetchall()
            return (time.perf_counter() - started) * 1e6

        return run

    def row_security(self) -> None:
        """The same calls by a role that bypasses row security."""
        roles = {"bypassed": self.bypass, "enforced": self.app}
        rows = []
        for name in ("token_window", "last_messages"):
            runs = {
                role: self.read(conn, name, 10_000, 100) for role, conn in roles.items()
            }
            rows.append((name, interleave(runs, self.rounds)))
        for conn in roles.values():
            conn.execute("set synchronous_commit = off")
        runs = {
            role: self.append(conn, "append_message") for role, conn in roles.items()
        }
        rows.append(("append_message, not synced", interleave(runs, self.rounds)))
        table(
            "Row security",
            ["", "bypassed", "enforced"],
            [
                [
                    name,
                    f"{f['bypassed']:,.0f} us",
                    against(f["enforced"], f["bypassed"]),
                ]
                for name, f in rows
            ],
        )

    def context(self) -> None:
        """The functions that say who is asking."""
        expressions = {
            "nothing": "1",
            "current_setting()": "current_setting('convo.tenant_id', true)",
            "current_tenant_id()": "convo.current_tenant_id()",
            "current_user_id()": "convo.current_user_id()",
            "_require_tenant()": "convo._require_tenant()",
        }
        query = "select bench.context(%s, 2000)"
        runs = {
            name: partial(self.number, self.app, query, (text,))
            for name, text in expressions.items()
        }
        found = interleave(runs, self.rounds)
        table(
            "Context, a call without the loop around it",
            ["function", "time"],
            [
                [name, f"{value - found['nothing']:.2f} us"]
                for name, value in found.items()
                if name != "nothing"
            ],
        )

    def purge(self) -> None:
        """What is due goes in batches, against one DELETE."""
        conversations = 1000 if self.quick else 4000
        self.admin.execute(
            "insert into convo.retention_policy"
            " values ('bench', 'standard', '30 days', 'activity', 'delete')"
        )
        longest: dict[str, float] = {}

        def prepare() -> None:
            self.admin.execute(
                "call bench.make_conversations(%s, 20, null, '60 days')",
                (conversations,),
            )
            self.admin.execute("vacuum analyze convo.message, convo.conversation")

        def delete() -> float:
            prepare()
            started = time.perf_counter()
            self.admin.execute(
                "delete from convo.conversation as c"
                " where c.tenant_id = 'bench'"
                " and c.updated_at < now() - '30 days'::interval"
            )
            return (time.perf_counter() - started) * 1e3

        def purge(page_size: int) -> float:
            prepare()
            elapsed = []
            while True:
                started = time.perf_counter()
                gone = self.number(
                    self.maintainer,
                    "select (convo.purge(false, %s)).conversations",
                    (page_size,),
                )
                elapsed.append((time.perf_counter() - started) * 1e3)
                if not gone:
                    name = f"purge, {page_size} conversations a batch"
                    longest[name] = statistics.median(elapsed[:-1])
                    return sum(elapsed)

        runs: dict[str, Callable[[], float]] = {"one DELETE": delete}
        for size in (10, 50, 100, 500):
            runs[f"purge, {size} conversations a batch"] = partial(purge, size)
        found = interleave(runs, 3)
        table(
            f"Purge of {conversations:,} conversations of 20 messages "
            "(in brackets: times one DELETE)",
            ["", "all", "one batch"],
            [
                [
                    name,
                    against(value, found["one DELETE"], "ms"),
                    f"{longest.get(name, value):.1f} ms",
                ]
                for name, value in found.items()
            ],
        )


@contextlib.contextmanager
def any_server(dsn: str | None) -> Iterator[str]:
    """Give the DSN of a server: the one named, or a throwaway one."""
    if dsn:
        yield dsn
        return
    settings = {"shared_buffers": "1GB", "max_wal_size": "4GB", "autovacuum": "off"}
    folder = Path(tempfile.gettempdir())
    with server.running(settings, durable=True, directory=folder) as running:
        yield running.dsn()


@contextlib.contextmanager
def database(dsn: str) -> Iterator[str]:
    """Make the database and the logins, and drop them at the end."""
    name = sql.Identifier(DATABASE)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(sql.SQL("create database {}").format(name))
        made = make_conninfo(dsn, dbname=DATABASE)
        try:
            with psycopg.connect(made, autocommit=True) as admin:
                migrate(admin)
                admin.execute(Path(__file__).with_name("setup.sql").read_bytes())
                for login, options in LOGINS.items():
                    admin.execute(f"create role {login} {options}".encode())
            yield made
        finally:
            conn.execute(sql.SQL("drop database {} with (force)").format(name))
            for login in LOGINS:
                conn.execute(f"drop role if exists {login}".encode())


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--dsn", help="a server to use, as superuser")
    parser.add_argument(
        "--quick", action="store_true", help="up to 100,000 messages, fewer rounds"
    )
    options = parser.parse_args()
    with any_server(options.dsn) as dsn, database(dsn) as made:
        Bench(made, options.quick).run()


if __name__ == "__main__":
    main()
