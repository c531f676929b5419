"""pgconvo summarize: any command writes the summaries."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from pgconvo import Client

PYTHON = f"{sys.executable} -c"
JOIN = (
    f"{PYTHON} 'import json, sys; given = json.load(sys.stdin);"
    ' print(given["previous_summary"], *[m["content"] for m in given["messages"]])\''
)


@pytest.fixture
def start(dsn):
    """Start the command and give the process."""

    def start(*args, login="test_service"):
        command = [sys.executable, "-c", "from pgconvo.cli import app; app()"]
        return subprocess.Popen(
            [*command, "summarize", "--tenant", "acme", *args],
            env={
                **os.environ,
                "COLUMNS": "80",
                "PGCONVO_DSN": make_conninfo(dsn, user=login),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def summarize(start):
    def run(*args, **options):
        process = start("--once", *args, **options)
        stdout, stderr = process.communicate(timeout=60)
        return process.returncode, stdout, stderr

    return run


@pytest.fixture
def talks(connect):
    """Two conversations of four messages; a summary is due over 30 tokens."""
    service = Client(connect("test_service", "acme"))
    service.set_policy("default", summary_threshold=30, summary_share=1)
    ann = Client(connect("test_app", "acme", "ann"))
    made = [ann.create_conversation() for _ in range(2)]
    for conversation_id in made:
        for number in range(4):
            ann.append_message(conversation_id, "user", f"näy {number}", tokens=10)
    return sorted(made)


def summaries(db):
    return db.execute(
        "select conversation_id, content, model from convo.summary order by 1, 2"
    ).fetchall()


def test_a_command_writes_the_summaries(summarize, talks, db):
    done = summarize("--command", JOIN, "--model", "m", "--message-limit", "2")

    assert done == (0, "summaries: 2; nothing to do: 0; failed: 0\n", "")
    assert summaries(db) == [(talk, "None näy 0 näy 1", "m") for talk in talks]
    assert summarize("--command", JOIN) == (
        0, "summaries: 0; nothing to do: 0; failed: 0\n", "",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("exit 3", "it ended with exit code 3"),
        ("no-such-command-is-there 2>/dev/null", "it ended with exit code 127"),
        ("sleep 9", "it took longer than 0.5 seconds"),
        (r"printf '\377'", "it printed something that isn't UTF-8"),
        ("true", "invalid argument"),
    ],
)
def test_a_command_that_fails_leaves_it_for_later(
    summarize, talks, db, command, reason
):
    code, stdout, stderr = summarize("--command", command, "--timeout", "0.5")

    assert (code, stdout) == (1, "summaries: 0; nothing to do: 0; failed: 2\n")
    assert sorted(line.split(": ")[0] for line in stderr.splitlines()) == [
        str(talk) for talk in talks
    ]
    assert reason in stderr
    assert summaries(db) == []


def test_what_takes_too_long_ends_with_all_that_it_started(summarize, talks, tmp_path):
    pids = tmp_path / "pids"
    summarize("--command", f"sleep 60 & echo $! >> {pids}; wait", "--timeout", "0.5")

    def is_gone(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
        except FileNotFoundError:
            return True

    started = pids.read_text().split()
    assert len(started) == 2
    wait_for(lambda: all(map(is_gone, started)))


def test_what_the_command_says_is_shown(summarize, talks):
    _, _, stderr = summarize("--command", "echo thinking >&2; echo text")

    assert stderr == "thinking\n" * 2


def test_it_goes_on_until_it_is_stopped(start, talks, db, connect):
    process = start("--command", "cat > /dev/null; echo text", "--interval", "0.1")
    try:
        wait_for(lambda: len(summaries(db)) == 2)
        ann = Client(connect("test_app", "acme", "ann"))
        for _ in range(4):
            ann.append_message(talks[0], "user", "more", tokens=10)
        wait_for(lambda: len(summaries(db)) == 3)
    finally:
        process.terminate()
        process.communicate(timeout=20)


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_login_that_may_not(summarize, talks):
    code, stdout, stderr = summarize("--command", JOIN, login="test_app")

    assert (code, stdout) == (1, "")
    assert stderr.startswith("Error: ")
    assert len(stderr.splitlines()) == 1
