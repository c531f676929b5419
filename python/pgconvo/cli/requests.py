"""pgconvo requests, pgconvo replay and pgconvo diff."""

from __future__ import annotations

import difflib
import hashlib
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer
from rich.text import Text

from pgconvo import PgconvoError

from ._common import (
    DsnOption,
    Tenant,
    User,
    allow_any_text,
    console,
    one_line,
    print_table,
    reading,
)


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("not a time such as '2026-05-04 10:04'") from None


Conversation = Annotated[UUID, typer.Argument(help="The conversation.", metavar="ID")]
Asked = Annotated[
    UUID,
    typer.Argument(help="A request, or the conversation of it.", metavar="ID"),
]
A = Annotated[UUID, typer.Argument(help="A request.", metavar="A")]
B = Annotated[UUID, typer.Argument(help="Another one.", metavar="B")]
At = Annotated[
    datetime | None,
    typer.Option(
        parser=_time,
        metavar="TIME",
        help="As of this time, by default the session's time zone.",
        show_default=False,
    ),
]
Lines = Annotated[int, typer.Option(min=0, max=1000, help="At most so many.")]

STYLES = {"+": "green", "-": "red", "@": "cyan"}


def requests(
    conversation_id: Conversation,
    tenant: Tenant,
    user: User = None,
    dsn: DsnOption = None,
    at: At = None,
    lines: Lines = 30,
) -> None:
    """List what was sent to a model, newest first."""
    with reading(dsn, tenant, user) as client:
        found = client.list_requests(conversation_id, at, lines)
    names = ("prepared", "request", "status", "tokens", "model")
    rows = [
        (_shown(r.created_at), r.request_id, r.status, r.token_count, r.model)
        for r in found
    ]
    print_table(names, rows, ("model", "tokens", "status", "prepared"))


def replay(
    id: Asked,
    tenant: Tenant,
    user: User = None,
    dsn: DsnOption = None,
    at: At = None,
) -> None:
    """Print the exact bytes that were sent to a model, and what they are on stderr.

    Of a conversation it is the newest request, or the newest one as of --at.
    """
    with reading(dsn, tenant, user) as client:
        found = client.list_requests(id, at, 1)
        if at is not None and not found:
            raise PgconvoError(
                "no request at that time or before",
                hint="List them with `pgconvo requests`; --at needs a conversation.",
            )
        request_id = found[0].request_id if found else id
        body = client.replay_request(request_id).encode()
    about = [f"request {request_id}"]
    if found:
        about += [_shown(found[0].created_at), found[0].status]
    about += [f"{len(body):,} bytes", f"sha256 {hashlib.sha256(body).hexdigest()}"]
    typer.echo(", ".join(about), err=True)
    sys.stdout.buffer.write(body)


def diff(
    a: A,
    b: B,
    tenant: Tenant,
    user: User = None,
    dsn: DsnOption = None,
) -> None:
    """Compare two requests as indented JSON. Exit code 1: they differ; 2: an error."""
    with reading(dsn, tenant, user) as client:
        bodies = [client.replay_request(request_id) for request_id in (a, b)]
    if bodies[0] == bodies[1]:
        return
    allow_any_text()
    old, new = ([*_indented(body)] for body in bodies)
    for line in difflib.unified_diff(old, new, str(a), str(b), lineterm=""):
        style = "bold" if line[:3] in ("---", "+++") else STYLES.get(line[0], "")
        # Never broken, so that it stays a diff.
        console.print(Text(line, style), soft_wrap=True)
    if old == new:
        console.print("They differ in how the JSON is written only.")
    raise typer.Exit(1)


def _shown(time: datetime) -> str:
    return time.isoformat(" ", "milliseconds")


def _indented(body: str) -> Iterator[str]:
    text = json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    return map(one_line, text.split("\n"))
