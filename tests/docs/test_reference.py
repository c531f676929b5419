"""docs/reference.md and docs/errors.md say what the database does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from pgconvo import errors

ROOT = Path(__file__).parents[2]


def test_reference_is_generated():
    command = [sys.executable, str(ROOT / "tools/gen_docs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def raised() -> dict[str, tuple[str, str]]:
    """Message and hint of each code, from the sources that raise them."""
    fail = (ROOT / "sql/functions/identity/_fail.sql").read_text()
    found = {
        code: (message, hint.replace("''", "'"))
        for code, message, hint in re.findall(
            r"\('(\w{5})', '(.+?)',\s+'(.+?)'\)", fail, re.DOTALL
        )
    }
    guard = (ROOT / "tools/new_migration.py").read_text()
    for code, message, hint in re.findall(
        r"errcode = '(\w{5})',\s+message = '(.+?)',.*?hint = '(.+?)'", guard, re.DOTALL
    ):
        found[code] = message, hint
    assert {"PC001", "PC050", "22023", "PC092"} < found.keys()
    return found


def test_every_error_is_explained():
    text = (ROOT / "docs/errors.md").read_text()
    rows = re.findall(r"^\| (\w{5}) \| (.+?) \| .+? \| (\w+) \|$", text, re.MULTILINE)
    assert {code: message for code, message, _ in rows} == {
        code: message for code, (message, _) in raised().items()
    }
    for code, _, name in rows:
        assert errors._BY_SQLSTATE[code].__name__ == name
    flowing = " ".join(text.split())
    for code, (_, hint) in raised().items():
        assert f"- **{code}**: {hint}" in flowing
