"""Parse SQL files with PostgreSQL's own grammar, and every body inside them.

    python tools/check_sql.py sql migrations

Prints file:line: error for each mistake; exit code 1 if there are any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pglast
from pglast import ast
from pglast.parser import ParseError


def check_file(path: Path) -> list[str]:
    """Return the mistakes in one file, each as file:line: error."""
    # Blanked, not removed, so that the lines keep their numbers.
    text = re.sub(r"(?m)^\\.*$", "", path.read_text())
    try:
        statements = pglast.parse_sql(text)
    except ParseError as error:
        return [f"{path}:{_line(text, error)}: {error.args[0]}"]
    found = []
    for raw in statements:
        start = raw.stmt_location or 0
        source = text[start : start + raw.stmt_len if raw.stmt_len else None]
        start += len(source) - len(source.lstrip())
        first = text[:start].count("\n") + 1
        for language, body in _bodies(raw.stmt):
            try:
                if language == "plpgsql":
                    pglast.parse_plpgsql(_without_our_types(source))
                elif language == "sql":
                    pglast.parse_sql(body)
            except ParseError as error:
                found.append(f"{path}:{first}: {language} body: {error.args[0]}")
    return found


def _line(text: str, error: ParseError) -> int:
    position = error.args[1] if len(error.args) > 1 else 0
    return text[:position].count("\n") + 1


def _without_our_types(source: str) -> str:
    """Rename our types: the parser of plpgsql has no catalogs to look them up in."""
    source = re.sub(r"\bconvo(_private)?\.\w+\[\]", "text[]", source)
    return re.sub(r"\bconvo(_private)?\.", "public.", source)


def _bodies(statement: ast.Node | None) -> Iterator[tuple[str, str]]:
    """Yield language and text of a function's or DO block's string body."""
    if isinstance(statement, ast.CreateFunctionStmt):
        options, language = statement.options or (), "sql"
    elif isinstance(statement, ast.DoStmt):
        options, language = statement.args or (), "plpgsql"
    else:
        return
    values = {option.defname: option.arg for option in options}
    if "language" in values:
        language = values["language"].sval
    if "as" in values:
        body = values["as"]
        yield language, (body[0] if isinstance(body, tuple) else body).sval


def main() -> None:
    """Check the files and folders given."""
    paths = [Path(argument) for argument in sys.argv[1:]]
    files = [
        file
        for path in paths
        for file in (sorted(path.rglob("*.sql")) if path.is_dir() else [path])
    ]
    found = [mistake for file in files for mistake in check_file(file)]
    print("\n".join([*found, f"{len(files)} files, {len(found)} mistakes"]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
