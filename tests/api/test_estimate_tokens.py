"""estimate_tokens: its contract, its accuracy and its cost."""

from __future__ import annotations

import gzip
import json
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

GROUP = 10  # texts of one kind and language that make a conversation


def estimate(db: psycopg.Connection, content: str | None) -> Any:
    row = db.execute("select convo.estimate_tokens(%s::text)", (content,)).fetchone()
    assert row
    return row[0]


def test_null_and_empty(db: psycopg.Connection) -> None:
    assert estimate(db, None) is None
    assert estimate(db, "") == 0


@pytest.mark.parametrize(
    "content", [" ", "\n", "a", ".", "-", "é", "\u0301", "я", "好", "🎉", "\U0010ffff"]
)
def test_any_text_is_at_least_one_token(db: psycopg.Connection, content: str) -> None:
    assert estimate(db, content) >= 1


def test_known_texts(db: psycopg.Connection) -> None:
    """A changed weight changes stored history's meaning: it must be seen."""
    known = {
        "Hello, how are you?": 4,
        '{"city": "Paris", "days": 3, "from": "2024-05-01"}': 20,
        "def add(a, b):\n    return a + b\n": 9,
        "Привіт, як справи?": 6,
        "你好，世界": 5,
        "สวัสดีครับ": 4,
        "Za\u0300 👍🏽 — ok": 10,
    }
    assert {content: estimate(db, content) for content in known} == known


def test_a_longer_text_never_has_fewer_tokens(db: psycopg.Connection) -> None:
    text = 'A  table --- of "ABC" def12345\n\t**bold** zka любов їжа Привет '
    text += "你好 안녕 ไทย שלום नमस्ते e\u0301 é Ω ლ 👩\u200d💻 “quoted” --  end"
    counts = [estimate(db, text[:length]) for length in range(len(text) + 1)]
    assert counts == sorted(counts)


@pytest.mark.parametrize("unit", ["word 12, ", "слово ", "字", "é", "👩‍💻 "])
def test_a_sampled_text_has_its_share_of_tokens(
    db: psycopg.Connection, unit: str
) -> None:
    """Over 32 kB slices are judged: at any cut, between characters of any length."""
    whole = unit * (32768 // len(unit.encode()))
    expected = estimate(db, whole)
    for extra in range(1, 8):
        counted = estimate(db, "x" * extra + whole + unit * extra)
        assert counted == pytest.approx(expected, rel=0.02)
    assert estimate(db, whole * 3) == pytest.approx(3 * expected, rel=0.02)


def test_huge_texts(db: psycopg.Connection) -> None:
    query = "select convo.estimate_tokens(repeat(%s, %s))"
    for unit, tokens in (("The quick brown fox. ", 4.5), ("👩‍💻", 5.5)):
        times = 64 * 1024 * 1024 // len(unit.encode())
        started = time.monotonic()
        row = db.execute(query, (unit, times)).fetchone()
        assert row
        assert row[0] == pytest.approx(tokens * times, rel=0.1)
        assert time.monotonic() - started < 10


def test_cost(db: psycopg.Connection) -> None:
    """An English message of 400 characters takes 15 µs on a quiet machine."""
    content = ("The committee will meet on Tuesday, and everybody is welcome. " * 7)[
        :400
    ]
    query = "select sum(convo.estimate_tokens(%s || n)) from generate_series(1, 1000) n"
    times = []
    for _ in range(6):  # the first one warms up
        started = time.monotonic()
        db.execute(query, (content,))
        times.append((time.monotonic() - started) / 1000)
    assert min(times) < 100e-6


def test_nondeterministic_collation(db: psycopg.Connection) -> None:
    try:
        db.execute(
            "create collation public.loose"
            " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("this server is built without ICU")
    for content in ("", "Hello, мир, 你好", "Hello, мир, 你好" * 3000):
        row = db.execute(
            "select convo.estimate_tokens(%s::text collate public.loose)", (content,)
        ).fetchone()
        assert row == (estimate(db, content),)


def test_catalog(db: psycopg.Connection) -> None:
    row = db.execute(
        "select provolatile::text, proparallel::text, proisstrict"
        " from pg_proc where oid = 'convo.estimate_tokens(text)'::regprocedure"
    ).fetchone()
    assert row == ("i", "s", True)


@pytest.mark.parametrize(
    "login", ["test_app", "test_service", "test_reader", "test_maintainer"]
)
def test_needs_no_tenant(
    connect: Callable[..., psycopg.Connection], login: str
) -> None:
    assert estimate(connect(login), "Hello") >= 1


def test_nobody_else_may_call_it(connect: Callable[..., psycopg.Connection]) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        estimate(connect("test_nobody"), "Hello")


def test_accuracy(db: psycopg.Connection, shared_data: Path) -> None:
    """Within 10 % for English prose and chat, 20 % for the rest, on the average."""
    file = shared_data / "multilingual/token_calibration.jsonl.gz"
    if not file.exists():
        pytest.skip(f"no {file.name} in {shared_data}")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for line in gzip.decompress(file.read_bytes()).decode().splitlines():
        row = json.loads(line)
        groups[row["kind"], row["lang"]].append(row)
    assert len(groups) > 40
    errors = {}
    for (kind, lang), rows in groups.items():
        texts = [row["text"] for row in rows]
        found = db.execute(
            "select convo.estimate_tokens(t)"
            " from unnest(%s::text[]) with ordinality as u (t, n) order by n",
            (texts,),
        ).fetchall()
        relative = []
        for start in range(0, len(rows), GROUP):
            true = sum(row["o200k"] for row in rows[start : start + GROUP])
            counted = sum(row[0] for row in found[start : start + GROUP])
            relative.append(abs(counted / true - 1))
        english = lang in ("eng", "en") and not kind.startswith(("code", "json-tool"))
        error = sum(relative) / len(relative)
        if error > (0.1 if english else 0.2):
            errors[kind, lang] = round(error, 3)
    assert errors == {}
