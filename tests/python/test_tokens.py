"""sign_context and pgconvo token: tokens that the database takes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from typer.testing import CliRunner

from pgconvo import Client, InvalidArgument, InvalidToken, sign_context
from pgconvo.cli import app

SECRET = "5a" * 32


@pytest.fixture
def client(connect, db):
    db.execute(
        "insert into convo_private.context_key values ('k1', decode(%s, 'hex'), null)",
        (SECRET,),
    )
    return Client(connect("test_app"))


def who(client, token):
    with client.connection.transaction():
        client.set_context_token(token)
        return client.current_tenant_id(), client.current_user_id()


def test_the_command_prints_a_token(client):
    done = CliRunner().invoke(
        app,
        ["token", "--tenant", "acme", "--user", "ann", "--key-id", "k1"],
        env={"PGCONVO_CONTEXT_SECRET": SECRET},
    )
    assert done.exit_code == 0
    assert who(client, done.stdout.strip()) == ("acme", "ann")


@pytest.mark.parametrize("secret", ["oops", "5a"])
def test_the_command_refuses_a_bad_secret(secret):
    done = CliRunner().invoke(
        app, ["token", "--tenant", "acme", "--key-id", "k1", "--secret", secret]
    )
    assert (done.exit_code, done.stdout) == (1, "")
    assert secret not in done.stderr


def test_a_token_without_a_user(client):
    token = sign_context("k1", bytes.fromhex(SECRET), "acme")
    assert who(client, token) == ("acme", None)


def test_a_token_ends_after_its_lifetime(client):
    token = sign_context(
        "k1", bytes.fromhex(SECRET), "acme", "ann", timedelta(minutes=-1)
    )
    with pytest.raises(InvalidToken) as caught:
        who(client, token)
    assert caught.value.detail == {"reason": "expired"}


@pytest.mark.parametrize(
    ("secret", "tenant", "user"),
    [
        (b"x" * 31, "acme", None),
        (b"x" * 65, "acme", None),
        (b"x" * 32, "", None),
        (b"x" * 32, "acme", ""),
        (b"x" * 32, "x" * 256, None),
    ],
)
def test_what_the_database_would_refuse_is_refused(secret, tenant, user):
    with pytest.raises(InvalidArgument):
        sign_context("k1", secret, tenant, user)
