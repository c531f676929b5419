"""pgconvo context and pgconvo explain, in a terminal of 80 columns."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from psycopg.conninfo import make_conninfo

from pgconvo import Client

PAYLOAD = '{ "role":"user",  "content": "\\u0041nd now?" }'


@pytest.fixture
def pgconvo(dsn):
    def run(*args, login="test_app", **environ):
        command = [sys.executable, "-c", "from pgconvo.cli import app; app()", *args]
        return subprocess.run(
            command,
            env={
                **os.environ,
                "COLUMNS": "80",
                "PYTHONIOENCODING": "utf-8",
                "PGCONVO_DSN": make_conninfo(dsn, user=login),
                **environ,
            },
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return run


@pytest.fixture
def conversation_id(connect):
    """A prompt, an old message of 5,000 tokens, a call without a result, and a turn."""
    ann = Client(connect("test_app", tenant="acme", user="ann"))
    made = ann.create_conversation(system_prompt="Be brief.")
    ann.append_message(made, "user", "old " * 50, tokens=5000)
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
    ann.append_messages(
        made, {"role": "assistant", "content": None, "tool_calls": [call]}, tokens=[20]
    )
    ann.append_message(made, "user", "\x1b[31m red", tokens=300)
    ann.append_message(made, "assistant", "long " * 50, tokens=3000)
    ann.append_messages(made, PAYLOAD, tokens=[7])
    return str(made)


def cells(line):
    return re.split(r"  +", line.strip())


def test_context(pgconvo, conversation_id):
    done = pgconvo("context", conversation_id, "--tenant", "acme", "--user", "ann")

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert cells(lines[0]) == ["kind", "seq", "role", "content", "tokens", "total"]
    assert [cells(line)[:1] for line in lines[2:]] == [
        ["system"], ["message"], ["message"], ["message"], ["4 items, 3,309 tokens"],
    ]  # fmt: skip
    assert "\x1b" not in done.stdout
    assert "3,000" in lines[4] and "3,302" in lines[4] and "█" * 10 in lines[4]
    assert max(map(len, lines)) <= 80


def test_context_with_policy_and_budget(pgconvo, conversation_id, connect):
    Client(connect("test_service", tenant="acme")).set_policy("p", token_budget=9000)
    command = ["context", conversation_id, "--tenant", "acme", "--user", "ann"]

    assert "5 items, 8,309 tokens" in pgconvo(*command, "--policy", "p").stdout
    done = pgconvo(*command, "--policy", "p", "--budget", "9")
    assert "2 items, 9 tokens" in done.stdout


def test_context_in_a_format_is_json_as_it_is(pgconvo, conversation_id):
    command = ["context", conversation_id, "--tenant", "acme", "--user", "ann"]
    done = pgconvo(*command, "--format", "openai", "--budget", "9")

    assert done.stdout == f'[{{"role":"system","content":"Be brief."}},{PAYLOAD}]\n'
    done = pgconvo(*command, "--format", "anthropic", "--budget", "9")
    assert json.loads(done.stdout)["system"]


def test_explain(pgconvo, conversation_id):
    done = pgconvo("explain", conversation_id, "--tenant", "acme", "--user", "ann")

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [cells(line)[:4] for line in lines[2:-1]] == [
        ["system", "system", "kept", "2"],
        ["message", "1", "user", "over the budget"],
        ["message", "2", "assistant", "call without a result"],
        ["message", "3", "user", "kept"],
        ["message", "4", "assistant", "kept"],
        ["message", "5", "user", "kept"],
    ]
    assert lines[-1] == "4 of 6 items kept, 3,309 tokens"
    assert max(map(len, lines)) <= 80


def test_a_narrow_terminal_without_unicode(pgconvo, conversation_id):
    command = ["context", conversation_id, "--tenant", "acme", "--user", "ann"]

    assert "#" in pgconvo(*command, PYTHONIOENCODING="ascii").stdout
    assert "█" not in pgconvo(*command, COLUMNS="50").stdout


def test_without_a_user_it_is_read_as_reader(pgconvo, conversation_id):
    for command in ("context", "explain"):
        args = [command, conversation_id, "--tenant", "acme"]
        assert "3,309 tokens" in pgconvo(*args, login="test_reader").stdout
        done = pgconvo(*args)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Error: test_app may not act as convo_reader")


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--user", "ben"], "Error: conversation not found"),
        (["--user", "ann", "--budget", "3"], "Error: what must be kept does not fit"),
        (["--user", "ann", "--policy", "x"], "Error: invalid argument"),
    ],
)
def test_errors_are_one_line(pgconvo, conversation_id, args, error):
    for command in ("context", "explain"):
        done = pgconvo(command, conversation_id, "--tenant", "acme", *args)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(error)
        assert done.stderr.count("\n") == 1


def test_both_change_nothing(pgconvo, conversation_id, db):
    query = "select * from convo.conversation"
    before = db.execute(query).fetchall()
    for command in ("context", "explain"):
        pgconvo(command, conversation_id, "--tenant", "acme", "--user", "ann")
    assert db.execute(query).fetchall() == before
