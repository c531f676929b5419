"""pgconvo memories."""

from __future__ import annotations

import os
import subprocess
import sys

from psycopg.conninfo import make_conninfo

from pgconvo import Client


def test_lists_what_is_known(connect, dsn):
    Client(connect("test_app", "acme", "ann")).remember(
        [
            {"key": "diet", "value": "vegan", "expires_at": "2999-01-02"},
            {"key": "colour", "value": "\x1b[31m red " + "x" * 100},
        ]
    )
    command = [sys.executable, "-c", "from pgconvo.cli import app; app()", "memories"]

    done = subprocess.run(
        [*command, "--tenant", "acme", "--user", "ann"],
        env={
            **os.environ,
            "COLUMNS": "60",
            "PYTHONIOENCODING": "utf-8",
            "PGCONVO_DSN": make_conninfo(dsn, user="test_app"),
        },
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["key", "value", "version", "expires"]
    assert sorted(line.split()[0] for line in lines[2:4]) == ["colour", "diet"]
    assert "\x1b" not in done.stdout
    assert all(len(line) <= 60 for line in lines)
