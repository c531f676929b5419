"""pgconvo prices and pgconvo usage, as a user calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from uuid import UUID

import pytest
from psycopg.conninfo import make_conninfo

from pgconvo import Client

HEADER = "model,effective_from,input,output,cache_read\n"


@pytest.fixture
def pgconvo(dsn):
    def run(*args, login="postgres"):
        command = [sys.executable, "-c", "from pgconvo.cli import app; app()", *args]
        environ = {
            "COLUMNS": "120",
            "PYTHONIOENCODING": "utf-8",
            "PGCONVO_DSN": make_conninfo(dsn, user=login),
        }
        return subprocess.run(
            command,
            env={**os.environ, **environ},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return run


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
        listed = pgconvo("prices", "list", login=login).stdout.splitlines()
        assert [line.split() for line in listed[2:]] == [
            ["m-1", "2026-01-01", "3", "0.3", "3", "3", "15", "15"],
            ["m-2", "2026-01-01", "10:00:00", "1", "1", "1", "1", "2", "2"],
        ]


def test_loading_again_changes_what_changed(load, db):
    load(HEADER + "m-1,2026-01-01,3,15,\nm-2,2026-01-01,3,15,\n")
    done = load(HEADER + "m-1,2026-01-01,3,15,\nm-2,2026-01-01,4,15,\n")
    assert done.stdout == "2 prices read, 1 of them new or changed\n"
    rows = db.execute("select model, input_price from convo.model_price order by 1")
    assert [(model, int(price)) for model, price in rows] == [("m-1", 3), ("m-2", 4)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing or unknown: effective_from, input, model, output"),
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


def test_only_the_owner_loads(load):
    done = load(HEADER + "m-1,2026-01-01,1,2,\n", login="test_service")
    assert done.returncode == 1
    assert "test_service may not act as convo_owner" in done.stderr


def test_usage_by_model(load, spend, pgconvo):
    load(HEADER + "m-1,2026-01-01,3,15,0.3\n")
    spend("m-1", prompt_tokens=1_000_000, completion_tokens=1000)
    spend("m-2", prompt_tokens=10)
    done = pgconvo("usage", "--tenant", "acme", login="test_reader")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[-3] == ["m-1", "1", "0", "1,000,000", "0", "0", "1,000", "0", "3.015",
                         "0"]  # fmt: skip
    assert lines[-2] == ["m-2", "1", "0", "10", "0", "0", "0", "0", "1"]
    assert done.stdout.endswith(
        "1 calls of models without a price aren't in the cost\n"
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
