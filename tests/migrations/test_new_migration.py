"""tools/new_migration.py writes what changed in sql/, and notices what lags behind."""

from __future__ import annotations

import re

import psycopg
import pytest

from pgconvo import migrate
from pgconvo.errors import MigrationError

VERSION = "sql/functions/identity/version.sql"
AUDIT = "sql/functions/retention/_audit.sql"
TABLE = "sql/tables/message.sql"


def edit(copy, path, old, new):
    file = copy.path.parent / path
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def reload(copy):
    copy.sources = copy.tool.Sources(copy.path.parent)
    return copy.sources


def write_next(copy, name, draft=""):
    sources = reload(copy)
    if draft:
        sources.migrations.pop()
    number = len(sources.migrations) + 1
    name = f"{number:04}_{name}"
    text = sources.following(name, number, draft)
    (copy.path / f"{name}.sql").write_text(text)
    copy.sign()
    return text


def test_the_project_itself_has_no_problems(copy):
    assert copy.sources.problems() == []


def test_a_changed_function_is_pasted_and_replaces(dsn, copy):
    edit(copy, VERSION, "comment on function", "-- new\ncomment on function")
    assert reload(copy).changed() == [VERSION]
    assert reload(copy).problems() == [f"{VERSION}: no migration has its present text"]
    text = write_next(copy, "change_version")
    assert f"-- >>> {VERSION}\n" in text and f"-- <<< {VERSION}\n" in text
    assert "create or replace function convo.version()" in text
    assert reload(copy).changed() == []
    with psycopg.connect(dsn, autocommit=True) as conn:
        done = migrate.migrate(conn, directory=copy.path)
    assert len(done) == 1


def test_a_changed_table_is_left_to_the_author(copy):
    edit(copy, TABLE, "comment on table", "-- new\ncomment on table")
    text = write_next(copy, "change_message")
    assert f"-- === {TABLE} " in text
    assert f">>> {TABLE}" not in text
    (problem,) = reload(copy).problems()
    assert problem.endswith("has a TODO")


def test_a_new_table_is_pasted(copy):
    (copy.path.parent / "sql/tables/x.sql").write_text("create table convo.x (a int);")
    edit(
        copy,
        "sql/install.sql",
        r"\ir tables/audit",
        "\\ir tables/x.sql\n\\ir tables/audit",
    )
    text = write_next(copy, "add_x")
    assert "-- >>> sql/tables/x.sql\ncreate table convo.x (a int);\n-- <<<" in text


def test_a_definer_function_is_made_by_its_owner(dsn, copy):
    edit(copy, AUDIT, "comment on function", "-- new\ncomment on function")
    text = write_next(copy, "change_audit")
    before, after = text.split(f"-- >>> {AUDIT}")
    assert before.endswith("set local role convo_search;\n\n")
    assert "set local role convo_owner;\nrevoke create on schema" in after
    with psycopg.connect(dsn, autocommit=True) as conn:
        assert len(migrate.migrate(conn, directory=copy.path)) == 1


def test_a_draft_keeps_its_header_and_what_was_written_by_hand(copy):
    edit(copy, TABLE, "comment on table", "-- new\ncomment on table")
    draft = re.sub("TODO: write.*", "by hand", write_next(copy, "draft"))
    draft = re.sub("TODO: .*", "a header", draft)
    edit(copy, VERSION, "comment on function", "-- new\ncomment on function")
    text = write_next(copy, "draft", draft)
    assert f">>> {VERSION}" in text and "-- by hand\n-- <<<" in text
    assert reload(copy).problems() == []
    edit(copy, TABLE, "-- new\n", "")
    edit(copy, TABLE, "comment on table", "-- newer\ncomment on table")
    text = write_next(copy, "draft", text)
    assert "-- TODO: the file changed again\n-- by hand\n" in text


def test_a_dropped_file_is_left_to_the_author(copy):
    edit(copy, "sql/install.sql", VERSION.replace("sql/", r"\ir ", 1) + "\n", "")
    problems = reload(copy).problems()
    assert f"{VERSION}: not listed in sql/install.sql" in problems
    text = write_next(copy, "drop_version")
    assert f"-- === {VERSION} gone\n" in text
    assert reload(copy).changed() == []


def test_a_stale_sum_is_a_problem(copy):
    (copy.path / "SHA256SUMS").write_text("")
    problems = copy.sources.problems()
    assert problems == ["migrations/SHA256SUMS: not what the files are"]
    with pytest.raises(MigrationError):
        migrate.available(copy.path)
