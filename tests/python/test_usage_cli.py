"""pgconvo prices and pgconvo usage, as a user calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from uuid import UUID

import pytest
from psycopg.conninfo import make_conninfo

from pgconvo import Client

HEADER = "model,effective_from,input,output,cache_read\n"


@pytest.fixture
def pgconvo(dsn):
    def run(*args, login="postgres", **environ):
        command = [sys.executable, "-c", "from pgconvo.cli import app; app()", *args]
        environ = {
            "PYTHONIOENCODING": "utf-8",
            "PGCONVO_DSN": make_conninfo(dsn, user=login),
            **environ,
        }
        return subprocess.run(
            command,
            env={**os.environ, **environ},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return run


def terminal(width):
    """The environment of a terminal."""
    return {"TTY_COMPATIBLE": "1", "TERM": "dumb", "COLUMNS": str(width)}


@pytest.fixture
def load(pgconvo, tmp_path):
    def load(text, **options):
        path = tmp_path / "prices.csv"
        path.write_text(text, encoding="utf-8")
        return pgconvo("prices", "load", str(path), **options)

    return load


@pytest.fixture
def spend(connect):
    """Complete a request of ann's with a usage."""
    ann = Client(connect("test_app", tenant="acme", user="ann"))
    made = ann.create_conversation()
    ann.append_message(made, "user", "Hi")

    def spend(model, **usage) -> UUID:
        request = ann.prepare_request(made, "openai", model)
        answer = {"message": {"role": "assistant", "content": "Hello"}}
        ann.complete_request(request.request_id, {"choices": [answer], "usage": usage})
        return made

    return spend


def test_prices_are_loaded_and_listed(load, pgconvo, db):
    done = load(HEADER + "m-1,2026-01-01,3,15,0.3\nm-2,2026-01-01T12:00+02:00,1,2,\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2 prices read, 2 of them new or changed\n"
    rows = db.execute(
        "select model, effective_from at time zone 'UTC', input_price,"
        " cache_read_price, cache_write_5m_price, cache_write_1h_price, output_price,"
        " reasoning_price from convo.model_price order by 1"
    ).fetchall()
    assert [[str(cell) for cell in row] for row in rows] == [
        ["m-1", "2026-01-01 00:00:00", "3", "0.3", "3", "3", "15", "15"],
        ["m-2", "2026-01-01 10:00:00", "1", "1", "1", "1", "2", "2"],
    ]
    for login in ("postgres", "test_service", "test_reader"):
        listed = pgconvo("prices", "list", login=login, **terminal(80))
        assert [line.split() for line in listed.stdout.splitlines()[-2:]] == [
            ["m-1", "2026-01-01", "3", "0.3", "3", "3", "15", "15"],
            ["m-2", "2026-01-01", "10:00:00", "1", "1", "1", "1", "2", "2"],
        ]


def test_prices_in_a_pipe(load, pgconvo):
    load(HEADER + "m-1,2026-01-01,3,15,0.0000001\n")
    assert pgconvo("prices", "list").stdout == (
        "model\teffective_from\tinput_price\tcache_read_price\t"
        "cache_write_5m_price\tcache_write_1h_price\toutput_price\treasoning_price\n"
        "m-1\t2026-01-01 00:00:00\t3\t0.0000001\t3\t3\t15\t15\n"
    )


def test_prices_are_listed_from_the_database_of_the_option(load, pgconvo, dsn):
    load(HEADER + "m-1,2026-01-01,3,15,\n")
    done = pgconvo("prices", "list", "--dsn", dsn, PGCONVO_DSN="dbname=none")
    assert "\nm-1\t" in done.stdout


def test_loading_again_changes_what_changed(load, db):
    load(HEADER + "m-1,2026-01-01,3,15,\nm-2,2026-01-01,3,15,\n")
    done = load(HEADER + "m-1,2026-01-01,3,15,\nm-2,2026-01-01,4,15,\n")
    assert done.stdout == "2 prices read, 1 of them new or changed\n"
    rows = db.execute("select model, input_price from convo.model_price order by 1")
    assert [(model, int(price)) for model, price in rows] == [("m-1", 3), ("m-2", 4)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: columns missing or unknown: effective_from, input, model"),
        (HEADER.replace("cache_read", "input"), "line 1: a column is there twice"),
        (HEADER.replace("input", "in"), "missing or unknown: input"),
        (HEADER.replace("cache_read", "cash_read"), "missing or unknown: cash_read"),
        (
            HEADER + "m-1,2026-01-01,1,2,\n,2026-01-01,1,2,\n",
            "line 3: a model has 1 to 255",
        ),
        (
            HEADER + "m-1,2026-01-01,1,2,\nm-1,2026-01-01T01:00+01:00,1,3,\n",
            "line 3: m-1 has two prices from that time on",
        ),
        (HEADER + "x" * 256 + ",2026-01-01,1,2,\n", "line 2: a model has 1 to 255"),
        (HEADER + "m-1,someday,1,2,\n", "line 2: Invalid isoformat string: 'someday'"),
        (HEADER + "m-1,2026-01-01,much,2,\n", "line 2: input is no price: much"),
        (HEADER + "m-1,2026-01-01,-1,2,\n", "line 2: input is no price: -1"),
        (HEADER + "m-1,2026-01-01,1e400000,2,\n", "line 2: input is no price: 1e40"),
        (HEADER + "m-1,2026-01-01,1e-400000,2,\n", "line 2: input is no price: 1e-4"),
        (HEADER + f"m-1,2026-01-01,0.{'3' * 99},2,\n", "line 2: input is no price: 0."),
        (
            HEADER + "m-1,2026-01-01T00:00:00.0001,1,2,\n",
            "line 2: a time is no finer than milliseconds",
        ),
        (HEADER + "m-1,2026-01-01,NaN,2,\n", "line 2: input is no price: NaN"),
        (HEADER + "m-1,2026-01-01,1\n", "line 2: more or fewer fields than columns"),
    ],
)
def test_a_bad_file_loads_nothing(load, db, text, message):
    done = load(text)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert db.execute("select count(*) from convo.model_price").fetchone() == (0,)


def test_a_file_in_another_encoding_loads_nothing(pgconvo, tmp_path):
    path = tmp_path / "prices.csv"
    path.write_bytes(HEADER.encode() + b"\xe9,2026-01-01,1,2,\n")
    done = pgconvo("prices", "load", str(path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "'utf-8' codec can't decode" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_price_of_nothing_is_a_price(load, db):
    done = load(HEADER + "m-1,2026-01-01,0e400000,0,\n")
    assert (done.returncode, done.stderr) == (0, "")
    row = db.execute("select input_price, output_price from convo.model_price")
    assert row.fetchone() == (0, 0)


def test_only_the_owner_loads(load):
    done = load(HEADER + "m-1,2026-01-01,1,2,\n", login="test_service")
    assert done.returncode == 1
    assert "test_service may not act as convo_owner" in done.stderr


def test_usage_by_model(load, spend, pgconvo):
    load(HEADER + "m-1,2026-01-01,3,15,0.3\n")
    spend("m-1", prompt_tokens=1_000_000, completion_tokens=1000)
    spend("m-2", prompt_tokens=10)
    command = ("usage", "--tenant", "acme")
    done = pgconvo(*command, login="test_reader", **terminal(120))
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[-2] == ["m-1", "1", "0", "1,000,000", "0", "0", "1,000", "0", "3.015",
                         "0"]  # fmt: skip
    assert lines[-1] == ["m-2", "1", "0", "10", "0", "0", "0", "0", "1"]
    assert done.stderr == "1 calls of models without a price aren't in the cost\n"


def test_usage_in_a_pipe_is_whole(load, spend, pgconvo):
    load(HEADER + "m-1,2026-01-01,3,15,0.3\n")
    made = spend("m-1", prompt_tokens=1_000_000, completion_tokens=1000)
    done = pgconvo("usage", "--tenant", "acme", "--by", "conversation", COLUMNS="40")
    assert [line.split("\t") for line in done.stdout.splitlines()] == [
        ["conversation_id", "user_id", "calls", "failed_calls", "input_tokens",
         "cache_read_tokens", "cache_write_tokens", "output_tokens",
         "reasoning_tokens", "cost", "unpriced_calls"],
        [str(made), "ann", "1", "0", "1000000", "0", "0", "1000", "0", "3.015", "0"],
    ]  # fmt: skip


@pytest.mark.parametrize("width", [50, 80, 120])
@pytest.mark.parametrize("by", ["conversation", "day"])
def test_a_narrow_terminal_shows_ids_and_days_whole(spend, pgconvo, by, width):
    made = spend("m-1", prompt_tokens=1_234_567)
    command = ("usage", "--tenant", "acme", "--by", by)
    done = pgconvo(*command, **terminal(width))
    today = f"{datetime.now(UTC):%F}"
    assert (str(made) if by == "conversation" else today) in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= width
    if width >= 80:
        assert "1,234,567" in done.stdout
    else:
        assert "No room for: reasoning_tokens" in done.stderr


def test_a_long_model_is_folded(spend, pgconvo):
    spend("m" * 200, prompt_tokens=1_234_567)
    done = pgconvo("usage", "--tenant", "acme", **terminal(80))
    assert done.stdout.count("m") >= 200
    assert "1,234,567" in done.stdout


def test_a_service_sees_usage_too(spend, pgconvo):
    spend("m-1", prompt_tokens=10)
    done = pgconvo("usage", "--tenant", "acme", "--json", login="test_service")
    assert json.loads(done.stdout)[0]["calls"] == 1


def test_others_are_told_what_they_need(spend, pgconvo):
    spend("m-1", prompt_tokens=10)
    done = pgconvo("usage", "--tenant", "acme", login="test_app")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: test_app may not act as convo_reader or convo_service"
        " | As superuser: grant convo_reader to test_app\n"
    )


@pytest.mark.parametrize("by", ["conversation", "user", "tenant", "model", "day"])
def test_usage_as_json(spend, pgconvo, by):
    made = spend("m-1", prompt_tokens=10)
    done = pgconvo("usage", "--tenant", "acme", "--by", by, "--json")
    (row,) = json.loads(done.stdout)
    assert (row["calls"], row["input_tokens"], row["cost"]) == (1, 10, None)
    assert row.get("conversation_id", str(made)) == str(made)


def test_another_tenants_usage_is_empty(spend, pgconvo):
    spend("m-1", prompt_tokens=10)
    assert pgconvo("usage", "--tenant", "evil", "--json").stdout == "[]\n"
