"""pgconvo demo, as a user calls it, and the files that it reads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pgconvo import demo, server, transcript
from pgconvo.transcript import TranscriptError

COMMAND = [sys.executable, "-c", "from pgconvo.cli import app; app()"]


@pytest.fixture(scope="module")
def pgconvo(bindir):
    """Run the command with a kept server of the module's own."""
    # Not below pytest's folder, which is closed to the user that root becomes.
    with server._folder(server._unprivileged(), None) as home:
        environ = {**os.environ, "PGBIN": str(bindir), "PGCONVO_HOME": str(home)}
        for name in ("PGCONVO_DSN", "COLUMNS"):
            environ.pop(name, None)

        def run(*args, **more):
            return subprocess.run(
                [*COMMAND, *map(str, args)],
                env={**environ, **more},
                capture_output=True,
                text=True,
                check=False,
            )

        yield run
        assert run("server", "stop").returncode == 0


@pytest.fixture(scope="module")
def shown(pgconvo):
    """What the built-in demo prints into a pipe."""
    done = pgconvo("demo")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def rows(text: str, title: str) -> list[list[str]]:
    """The cells of the table below a title, without its header."""
    part = text[text.index(title) :]
    table = re.search(r"─+\n((?:.+\n)+)", part)
    assert table is not None
    return [re.split(r" {2,}", line.strip()) for line in table[1].splitlines()]


def test_window_keeps_what_fits(shown):
    table = rows(shown, "Read what fits in 150 tokens")[:12]
    assert [row[0] for row in table] == [str(seq) for seq in range(1, 13)]
    inside = [row[0] for row in table if row[5] == "yes"]
    assert inside == [str(seq) for seq in range(6, 13)]
    assert table[3][4] == table[4][4], "a call and its result share a total"
    assert all(set(row[6]) == {"█"} for row in table)


def test_last_messages_and_list(shown):
    assert [row[0] for row in rows(shown, "Read the last 4")] == list(
        map(str, range(9, 13))
    )
    assert rows(shown, "List the conv")[0][:3] == ["Where is my order?", "12", "203"]


def test_other_tenant_delete_and_purge(shown):
    assert rows(shown, "Look from another tenant")[0] == ["0", "0", "0"]
    assert rows(shown, "Delete a conversation")[:5] == [
        ["conversation", "1", "0"],
        ["message", "13", "0"],
        ["message_revision", "1", "0"],
        ["idempotency_key", "1", "0"],
        ["tombstone", "0", "1"],
    ]
    assert rows(shown, "Purge what is older")[0] == ["1", "12", "0", "true"]


def test_what_it_says_at_the_end_works(shown, bindir, pgconvo):
    (dsn,) = set(re.findall(r"postgresql://demo_app@\S+", shown))
    query = "select title from convo.list_conversations()"
    command = [bindir / "psql", "-XAtq", dsn, "-c", query]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "Where is my order?\n"
    assert pgconvo("selftest", dsn.replace("demo_app", "postgres")).returncode == 0


def test_shown_sql_runs_as_it_stands(shown):
    (dsn,) = set(re.findall(r"postgresql://demo_app@\S+", shown))
    steps = re.findall(r"^begin;\n(?:.+\n)+?commit;$", shown, re.MULTILINE)
    assert len(steps) == 7
    with psycopg.connect(dsn, autocommit=True) as conn:
        for step in steps[1:5]:  # those that only read
            conn.execute(step)


def test_works_again_in_a_narrow_terminal_without_colour_or_utf8(pgconvo):
    done = pgconvo("demo", COLUMNS="50", NO_COLOR="1", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines if " assistant " in line) <= 50
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("shape", ["array", "object", "json_lines"])
def test_own_file(pgconvo, tmp_path, shape):
    messages = [
        {"role": "user", "content": "[bold]Grüße\x1b[2J\n😀"},
        {"role": "assistant", "content": "word " * 400},
    ] * 20
    file = tmp_path / "it's mine.json"
    file.write_text(
        {
            "array": json.dumps(messages),
            "object": json.dumps({"model": "x", "messages": messages}, indent=1),
            "json_lines": "\n\n".join(map(json.dumps, messages)),
        }[shape]
    )
    done = pgconvo("demo", "--file", file, "--budget", "20")
    assert (done.returncode, done.stderr) == (0, "")
    assert "it's mine.json" in done.stdout and "\x1b" not in done.stdout
    assert "[bold]Grüße [2J 😀" in done.stdout
    assert "so nothing fits" in done.stdout
    assert "Only the newest 30 of 40 messages are shown." in done.stdout


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[{"role": "user", "content": "a"}, {"role": "bot"}]', "message 2 of 2: unkn"),
        (
            '{"role": "user", "content": "a"}\n\n{"role": "tool"}',
            "line 3: content is m",
        ),
        ("[1]", "message 1 of 1: not an object"),
    ],
)
def test_invalid_message_is_named(pgconvo, tmp_path, text, place):
    file = tmp_path / "chat.json"
    file.write_text(text)
    done = pgconvo("demo", "--file", file)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: chat.json, {place}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x: the file is empty"),
        ("[]", "x: there are no messages in it"),
        ('{"messages": []}', "x: there are no messages in it"),
        ("7", "x: neither an array of messages nor an object"),
        ("[\n{]", "x, line 2, column 2: not JSON: "),
        ("[NaN]", "x: not JSON: NaN is not a JSON value"),
        ('{"role": "user"}\n{', "x, line 2, column 2: not JSON"),
        ('{"messages": []}\n{"messages": []}', "x, line 1: a whole conversation"),
        ("[" * 100_000, "x: not JSON: maximum recursion"),
    ],
)
def test_not_a_transcript(text, message):
    with pytest.raises(TranscriptError) as caught:
        transcript.parse("x", text)
    assert caught.value.message.startswith(message)


def test_unreadable_files(tmp_path):
    for content, message in [(None, "No such file"), (b"[\xff", "not UTF-8 at byte 1")]:
        file = tmp_path / "chat.json"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(TranscriptError, match=message):
            transcript.read(file)


def test_json_lines_and_arrays_keep_their_bytes(tmp_path):
    line = '{"role":"user",  "content":"\\u0000\u2028"}'
    for text in (f"\ufeff{line}\r\n{line}\n", f"[{line}\n,{line}]"):
        file = tmp_path / "chat.json"
        file.write_text(text, newline="")
        read = transcript.read(file)
        assert (read.count, read.messages.count(line)) == (2, 2)


def test_builtin_is_valid_and_ends_inside_the_window():
    chat = demo.builtin()
    assert chat.count == 12
    assert json.loads(chat.messages)[-1]["role"] == "assistant"
    assert Path(server.__file__).with_name("demo.json").exists()
