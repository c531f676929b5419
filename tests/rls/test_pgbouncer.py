"""A pooler that gives each transaction another client's connection."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from .world import GARBAGE, PEOPLE, VICTIM, attempt

WHOSE = "select distinct tenant_id || '/' || user_id from convo.message"
PREPARED = (1, 21)  # the version that can keep prepared statements in transaction mode
CONFIG = """
[databases]
convo = host={host} port={port} dbname={dbname}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 1
"""


def find_pgbouncer() -> Path:
    path = os.environ.get("PATH", "")
    found = shutil.which("pgbouncer", path=f"{path}{os.pathsep}/usr/sbin")
    if found is None:
        pytest.skip("no pgbouncer on the PATH or in /usr/sbin")
    return Path(found)


def version_of(pgbouncer: Path) -> tuple[int, int]:
    said = subprocess.run(
        [pgbouncer, "--version"], check=True, capture_output=True, text=True
    ).stdout
    found = re.search(r"PgBouncer (\d+)\.(\d+)", said)
    assert found, said
    return int(found[1]), int(found[2])


def unprivileged() -> str | None:
    """Who runs it: pgbouncer refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@pytest.fixture(scope="module", params=["without prepared", "with prepared"])
def pooled(request, world):
    """Connect through the pooler; all clients of a login share one connection."""
    pgbouncer = find_pgbouncer()
    with_prepared = request.param == "with prepared"
    if with_prepared and version_of(pgbouncer) < PREPARED:
        pytest.skip(
            "this pgbouncer is older than 1.21 and keeps no prepared statements"
        )
    server = conninfo_to_dict(world.dsn)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        listen = sock.getsockname()[1]
    account = unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="pgconvo."))
    config = CONFIG.format(**server, listen=listen, folder=folder)
    if with_prepared:
        config += "max_prepared_statements = 100\n"
    (folder / "pgbouncer.ini").write_text(config)
    logins = ["test_app", "test_service", "rls_pinned"]
    (folder / "users").write_text("".join(f'"{login}" ""\n' for login in logins))
    folder.chmod(0o755)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [pgbouncer, "-q", folder / "pgbouncer.ini"], user=account, stderr=log
        )
    clients = []

    def connect(login="test_app"):
        client = psycopg.connect(
            host="127.0.0.1",
            port=listen,
            dbname="convo",
            user=login,
            autocommit=True,
            prepare_threshold=0 if with_prepared else None,
        )
        clients.append(client)
        return client

    try:
        for _ in range(100):
            try:
                connect()
                break
            except psycopg.OperationalError:
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.05)
        yield connect
    finally:
        for client in clients:
            client.close()
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder)


def backend(client):
    return client.execute("select pg_backend_pid()").fetchone()


def test_the_clients_share_a_connection(pooled):
    assert backend(pooled()) == backend(pooled())


def test_context_never_reaches_the_next_client(pooled):
    """S62: set_context is for the transaction only."""
    clients = {person: pooled() for person in PEOPLE}
    stranger = pooled()
    for person, client in list(clients.items()) * 5:
        with client.transaction():
            client.execute("select convo.set_context(%s, %s)", person)
            assert client.execute(WHOSE).fetchall() == [("/".join(person),)]
        assert stranger.execute(WHOSE).fetchall() == []
        assert attempt(stranger, "select convo.list_conversations()").code == "PC030"
        with stranger.transaction():
            seen = "select convo.current_tenant_id(), convo.current_user_id()"
            assert stranger.execute(seen).fetchall() == [(None, None)]


def test_context_goes_with_a_failed_transaction(pooled):
    client, stranger = pooled(), pooled()
    with pytest.raises(psycopg.errors.DivisionByZero), client.transaction():
        client.execute("select convo.set_context(%s, %s)", VICTIM)
        client.execute("select 1 / 0")
    assert stranger.execute(WHOSE).fetchall() == []


def test_context_goes_with_a_client_that_breaks_off(pooled):
    client, stranger = pooled(), pooled()
    client.execute("begin")
    client.execute("select convo.set_context(%s, %s)", VICTIM)
    client.close()
    assert stranger.execute(WHOSE).fetchall() == []


def test_functions_of_two_clients_by_turns(pooled, world):
    """The same statements, prepared or not, each time for another user."""
    clients = [(person, pooled()) for person in PEOPLE]
    for _ in range(3):
        for person, client in clients:
            with client.transaction():
                client.execute("select convo.set_context(%s, %s)", person)
                for other in PEOPLE:
                    got = client.execute(
                        "select * from convo.last_messages(%s, %s)",
                        (world.things[other].live, 10),
                    )
                    assert (got.rowcount > 0) == (other == person)


def test_a_session_setting_does_reach_the_next_client(pooled):
    """So by design of the pooler: SET without LOCAL is not for transaction mode."""
    client, stranger = pooled("test_service"), pooled("test_service")
    client.execute("set convo.tenant_id = 'b'")
    try:
        assert stranger.execute(WHOSE).fetchall() == [("b/ann",)]
    finally:
        client.execute("reset convo.tenant_id")
    assert stranger.execute(WHOSE).fetchall() == []


@pytest.mark.parametrize("tenant", ["b", GARBAGE, "a"])
def test_a_pinned_login_stays_in_its_tenant(pooled, tenant):
    client = pooled("rls_pinned")
    with client.transaction():
        client.execute("select convo.set_context(%s, 'ann')", (tenant,))
        assert client.execute(WHOSE).fetchall() == [("a/ann",)]
