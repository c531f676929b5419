"""A copy of the migrations that a test may add to, and the three ways to run them."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import psycopg
import pytest

from pgconvo import drift
from pgconvo.migrate import migrate

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def new_migration() -> ModuleType:
    """tools/new_migration.py as a module."""
    path = ROOT / "tools/new_migration.py"
    spec = importlib.util.spec_from_file_location("new_migration", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Copy:
    """A folder of migrations that grows."""

    def __init__(self, root: Path, tool: ModuleType) -> None:
        self.path = root / "migrations"
        self.tool = tool
        shutil.copytree(ROOT / "migrations", self.path)
        shutil.copytree(ROOT / "sql", root / "sql")
        self.sources = tool.Sources(root)

    def add(self, name: str, body: str, ahead: int = 1) -> Path:
        """Add a migration that runs as the owner; ahead: 1 follows the newest one."""
        version = len(self.sources.migrations) + ahead
        name = f"{version:04}_{name}"
        text = "\n".join(
            [
                self.tool.HEADER.format(name=name, summary="-", phase="-", locks="-"),
                self.tool.GUARD.format(name=name, version=version, track="core"),
                f"set local role convo_owner;\n{body};\nreset role;\n",
                self.tool.LEDGER.format(name=name, version=version, track="core"),
            ]
        )
        path = self.path / f"{name}.sql"
        path.write_text(text)
        self.sign()
        return path

    def sign(self) -> None:
        """Make SHA256SUMS agree with the files."""
        (self.path / "SHA256SUMS").write_text(self.sources.sums())


@pytest.fixture
def copy(tmp_path: Path, new_migration: ModuleType) -> Copy:
    return Copy(tmp_path, new_migration)


@pytest.fixture
def empty(make_database: Callable[..., str]) -> str:
    """The DSN of an empty database."""
    return make_database()


@pytest.fixture(scope="session")
def psql(bindir: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run psql: `psql(dsn, "-1", "-f", path)`."""

    def psql(dsn: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
        command = [bindir / "psql", "-X", "-q", *args, dsn]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return psql


@pytest.fixture(scope="session")
def facts() -> Callable[[str], list[str]]:
    """The facts of tools/catalog.sql about a database."""

    def facts(dsn: str) -> list[str]:
        with psycopg.connect(dsn, autocommit=True) as conn:
            return drift.facts(conn)

    return facts


@pytest.fixture(params=["pgconvo", "psql", "dbmate"])
def apply_all(request, psql) -> Callable[..., None]:
    """Apply the migrations of a track in a folder, one way or another."""

    def by_pgconvo(dsn: str, directory: Path, track: str = "core") -> None:
        with psycopg.connect(dsn, autocommit=True) as conn:
            migrate(conn, directory=directory, track=track)

    def by_psql(dsn: str, directory: Path, track: str = "core") -> None:
        folder = directory if track == "core" else directory / track
        for path in sorted(folder.glob("*.sql")):
            done = psql(dsn, "-1", "-v", "ON_ERROR_STOP=1", "-f", path)
            assert (done.returncode, done.stderr) == (0, "")

    def by_dbmate(dsn: str, directory: Path, track: str = "core") -> None:
        dbmate = Path(sys.executable).with_name("dbmate")
        options = ["--url", f"{dsn}?sslmode=disable", "-d", str(directory)]
        if track != "core":
            options[-1] += f"/{track}"
            options += ["--migrations-table", f"{track}_migrations"]
        command = [str(dbmate), *options, "--no-dump-schema", "migrate"]
        subprocess.run(command, check=True, capture_output=True)

    return {"pgconvo": by_pgconvo, "psql": by_psql, "dbmate": by_dbmate}[request.param]
