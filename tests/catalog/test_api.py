"""What callers may rely on: the signatures in api.txt, and explained errors."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

API = Path(__file__).with_name("api.txt")
ROOT = Path(__file__).parents[2]
HINT = (
    "Callers rely on every line of tests/catalog/api.txt: give a changed function the"
    " suffix _v2 and keep the old one as a shim. When that is done, or the change is"
    " announced: ACCEPT_API=1 make test-one T=tests/catalog/test_api.py"
)


def signatures(db):
    rows = db.execute(
        r"""
        select concat_ws(
            ' ', case p.prokind when 'p' then 'procedure' else 'function' end,
            format('%s(%s)', p.oid::regproc, pg_get_function_arguments(p.oid)),
            'returns ' || pg_get_function_result(p.oid)
        )
        from pg_proc as p
        where p.pronamespace = 'convo'::regnamespace and p.proname !~ '^_'
        union all
        select format(
            'type %s (%s)', t.oid::regtype, string_agg(
                format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', '
                order by a.attnum
            )
        )
        from pg_type as t
        join pg_class as c on c.oid = t.typrelid and c.relkind = 'c'
        join pg_attribute as a on a.attrelid = c.oid
        where t.typnamespace = 'convo'::regnamespace and t.typname !~ '^_'
        group by t.oid
        """
    )
    return sorted(line for (line,) in rows)


def test_public_signatures_are_the_announced_ones(db):
    now = signatures(db)
    if os.environ.get("ACCEPT_API"):
        API.write_text("\n".join(now) + "\n")
    announced = API.read_text().splitlines()
    gone = [f"- {line}" for line in announced if line not in now]
    new = [f"+ {line}" for line in now if line not in announced]
    assert gone + new == [], HINT
    assert announced == sorted(set(announced))


def errors_raised():
    """Code, MESSAGE and HINT of each error that _fail knows."""
    source = (ROOT / "sql/functions/identity/_fail.sql").read_text()
    rows = re.findall(r"\('(\w{5})', '((?:[^']|'')*)',\s*'((?:[^']|'')*)'\)", source)
    return [tuple(text.replace("''", "'") for text in row) for row in rows]


def test_errors_are_found_in_the_source():
    assert {"PC001", "PC030", "PC040", "22023", "42501"} <= {
        code for code, _, _ in errors_raised()
    }


@pytest.mark.parametrize(("code", "message", "hint"), errors_raised())
def test_an_error_is_explained(code, message, hint):
    text = re.sub(r"\s+", " ", (ROOT / "docs/errors.md").read_text())
    assert code in text
    assert message in text
    assert hint in text


def test_errors_have_no_words_of_their_own(db):
    """Nothing but _fail raises, so that MESSAGE and HINT are constant."""
    raising = db.execute(
        """
        select p.oid::regproc::text
        from pg_proc as p
        where p.pronamespace in ('convo'::regnamespace, 'convo_private'::regnamespace)
            and p.prosrc ~* '\\mraise\\M'
        """
    ).fetchall()
    assert raising == [("convo._fail",)]
