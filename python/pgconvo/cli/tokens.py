"""pgconvo token."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from pgconvo.errors import InvalidArgument
from pgconvo.tokens import sign_context

from ._common import Tenant

User = Annotated[str | None, typer.Option(help="The user.", show_default=False)]
KeyId = Annotated[str, typer.Option(help="Which key it is.")]
Secret = Annotated[
    str,
    typer.Option(
        envvar="PGCONVO_CONTEXT_SECRET",
        help="The key in hex. Better in the environment than on a command line.",
        show_default=False,
    ),
]
Minutes = Annotated[int, typer.Option(min=1, help="How long it is valid.")]


def token(
    tenant: Tenant,
    key_id: KeyId,
    secret: Secret,
    user: User = None,
    minutes: Minutes = 5,
) -> None:
    """Print a signed token for set_context_token."""
    try:
        key = bytes.fromhex(secret)
    except ValueError:
        raise InvalidArgument("the secret isn't hex") from None
    typer.echo(sign_context(key_id, key, tenant, user, timedelta(minutes=minutes)))
