"""pgconvo requests, pgconvo replay and pgconvo diff."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from psycopg.conninfo import make_conninfo

from pgconvo import Client

PAYLOAD = '{ "role":"user",  "content": "\\u0041\\ud800\\u0000 \\u009b31m é" }'
ANN = ("--tenant", "acme", "--user", "ann")


@pytest.fixture
def pgconvo(dsn):
    """Run it in a terminal of 80 columns; what it prints is bytes."""

    def run(*args, login="test_app", **environ):
        command = [sys.executable, "-c", "from pgconvo.cli import app; app()"]
        return subprocess.run(
            [*command, *map(str, args)],
            env={
                **os.environ,
                "COLUMNS": "80",
                "PYTHONIOENCODING": "utf-8",
                "PGCONVO_DSN": make_conninfo(dsn, user=login),
                **environ,
            },
            capture_output=True,
            check=False,
        )

    return run


@pytest.fixture
def two(connect, db):
    """A conversation with two requests, the first of them an hour ago."""
    ann = Client(connect("test_app", tenant="acme", user="ann"))
    conversation_id = ann.create_conversation()
    ann.append_messages(conversation_id, PAYLOAD)
    first = ann.prepare_request(conversation_id, "openai", "gpt-x")
    ann.complete_request(first.request_id, {"role": "assistant", "content": "Yes."})
    db.execute("update convo.request set created_at = created_at - interval '1 hour'")
    ann.append_message(conversation_id, "user", "And now?")
    return first, ann.prepare_request(conversation_id, "openai", "gpt-x")


def terminal(width):
    """The environment of a terminal."""
    return {"TTY_COMPATIBLE": "1", "TERM": "dumb", "COLUMNS": str(width)}


def test_requests_are_listed_newest_first(pgconvo, two):
    done = pgconvo("requests", two[0].conversation_id, *ANN, **terminal(80))

    lines = done.stdout.decode().splitlines()
    assert [line.split()[2:] for line in lines[2:]] == [
        [str(two[1].request_id), "prepared"],
        [str(two[0].request_id), "completed"],
    ]
    assert max(map(len, lines)) <= 80
    assert (done.returncode, done.stderr) == (0, b"No room for: model, tokens\n")


def test_a_wide_terminal_shows_tokens_and_model(pgconvo, two):
    done = pgconvo("requests", two[0].conversation_id, *ANN, **terminal(120))

    assert re.search(rf"{two[1].token_count} +gpt-x", done.stdout.decode())


def test_a_narrow_terminal_shows_ids_whole(pgconvo, two):
    done = pgconvo("requests", two[0].conversation_id, *ANN, **terminal(40))

    lines = done.stdout.decode().splitlines()
    assert [line.strip() for line in lines[2:]] == [
        str(two[1].request_id), str(two[0].request_id)
    ]  # fmt: skip


def test_requests_in_a_pipe(pgconvo, two):
    done = pgconvo("requests", two[0].conversation_id, *ANN)

    assert (done.returncode, done.stderr) == (0, b"")
    header, newest, _ = (line.split("\t") for line in done.stdout.decode().splitlines())
    assert header == ["prepared", "request", "status", "tokens", "model"]
    assert datetime.fromisoformat(newest[0]) == two[1].created_at
    assert newest[1:] == [
        str(two[1].request_id), "prepared", str(two[1].token_count), "gpt-x"
    ]  # fmt: skip


def test_replay_prints_the_exact_bytes_and_nothing_else(pgconvo, two):
    for request in two:
        done = pgconvo("replay", request.request_id, *ANN)
        assert (done.returncode, done.stdout) == (0, request.body.encode())
        assert done.stderr.decode() == (
            f"request {request.request_id}, {len(done.stdout)} bytes, "
            f"sha256 {request.body_sha256.hex()}\n"
        )


def test_replay_of_a_conversation_is_its_newest_request(pgconvo, two):
    done = pgconvo("replay", two[0].conversation_id, *ANN)

    assert hashlib.sha256(done.stdout).digest() == two[1].body_sha256
    about = done.stderr.decode().split(", ")
    assert about[0] == f"request {two[1].request_id}"
    assert datetime.fromisoformat(about[1]) == two[1].created_at
    assert about[2] == "prepared"


def test_replay_at_a_time(pgconvo, two):
    def replay(time):
        return pgconvo("replay", two[0].conversation_id, *ANN, "--at", time)

    then = two[1].created_at - timedelta(minutes=1)
    assert replay(then).stdout == two[0].body.encode()
    assert replay(two[1].created_at).stdout == two[1].body.encode()
    done = replay(then - timedelta(days=1))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"Error: no request at that time or before")


def test_a_time_is_of_the_sessions_time_zone(pgconvo, two):
    then = two[1].created_at - timedelta(minutes=1)
    for zone in ("Asia/Tokyo", "America/Lima"):
        local = f"{then.astimezone(ZoneInfo(zone)):%F %T}"
        command = ["replay", two[0].conversation_id, *ANN, "--at", local]
        assert pgconvo(*command, PGTZ=zone).stdout == two[0].body.encode()


def test_what_is_no_time_is_refused(pgconvo, two):
    done = pgconvo("replay", two[0].conversation_id, *ANN, "--at", "ten")

    assert done.returncode == 2
    assert b"not a time" in done.stderr


def test_diff_of_two_requests(pgconvo, two):
    done = pgconvo("diff", two[0].request_id, two[1].request_id, *ANN)

    assert (done.returncode, done.stderr) == (1, b"")
    lines = done.stdout.decode().splitlines()
    assert lines[:2] == [f"--- {two[0].request_id}", f"+++ {two[1].request_id}"]
    assert [line for line in lines[2:] if line[0] in "+-"] == [
        "+    },",
        "+    {",
        '+      "role": "assistant",',
        '+      "content": "Yes."',
        "+    },",
        "+    {",
        '+      "role": "user",',
        '+      "content": "And now?"',
    ]
    assert "\x9b" not in done.stdout.decode()


def test_diff_of_the_same_bytes_is_silent(pgconvo, two):
    done = pgconvo("diff", two[0].request_id, two[0].request_id, *ANN)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_diff_has_colours_on_a_terminal(pgconvo, two):
    command = ["diff", two[0].request_id, two[1].request_id, *ANN]
    done = pgconvo(*command, FORCE_COLOR="1", TERM="xterm", NO_COLOR="")

    assert '\x1b[32m+      "content": "And now?"\x1b[0m' in done.stdout.decode()


def test_diff_of_the_same_json_in_other_bytes(pgconvo, two, connect):
    ann = Client(connect("test_app", tenant="acme", user="ann"))
    ids = [
        ann.prepare_request(two[0].conversation_id, "openai", parameters=p).request_id
        for p in ('{"n":1,"stop":[ ]}', '{"n":1,"stop":[]}')
    ]
    done = pgconvo("diff", *ids, *ANN)

    assert (done.returncode, done.stdout.count(b"\n")) == (1, 1)


def test_a_reader_needs_no_user(pgconvo, two):
    first, second = (request.request_id for request in two)
    for command in (["replay", first], ["diff", first, second],
                    ["requests", two[0].conversation_id]):  # fmt: skip
        done = pgconvo(*command, "--tenant", "acme", login="test_reader")
        assert done.stdout and done.returncode == (command[0] == "diff")


def test_a_service_needs_no_user(pgconvo, two):
    command = ["replay", two[0].request_id, "--tenant", "acme"]
    assert pgconvo(*command, login="test_service").stdout == two[0].body.encode()


@pytest.mark.parametrize(
    ("who", "role"),
    [(ANN, "convo_app"), (ANN[:2], "convo_reader")],
)
def test_a_login_without_the_role_is_told_what_it_needs(pgconvo, two, who, role):
    done = pgconvo("replay", two[0].request_id, *who, login="test_nobody")

    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.endswith(f"grant {role} to test_nobody\n".encode())
    assert done.stderr.count(b"\n") == 1


def test_not_theirs_and_not_there_are_one_error(pgconvo, two):
    first, second = (request.request_id for request in two)
    for user, ids in (("ben", (first, second)), ("ann", (uuid4(), uuid4()))):
        who = ("--tenant", "acme", "--user", user)
        for command, code in ((["replay", ids[0]], 1), (["diff", *ids], 2)):
            done = pgconvo(*command, *who)
            assert (done.returncode, done.stdout) == (code, b"")
            assert done.stderr.startswith(b"Error: request not found")
            assert done.stderr.count(b"\n") == 1


def test_what_was_erased_is_named(pgconvo, two, db):
    db.execute("delete from convo.message where seq = 3")
    first, second = (request.request_id for request in two)
    assert pgconvo("replay", first, *ANN).returncode == 0
    for command, code in ((["replay", second], 1), (["diff", first, second], 2)):
        done = pgconvo(*command, *ANN)
        assert (done.returncode, done.stdout) == (code, b"")
        error = done.stderr.decode()
        assert error.startswith("Error: request can not be replayed exactly any more")
        assert json.loads(error.split(" | ")[1])["request_id"] == str(second)
