"""The pgconvo command."""

from __future__ import annotations

import typer

from . import (
    context,
    demo,
    embed,
    memories,
    migrations,
    purge,
    requests,
    selftest,
    servers,
    summarize,
    tokens,
    usage,
)
from ._common import Group

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="LLM conversation history in PostgreSQL.",
)
app.add_typer(servers.app, name="server")
app.add_typer(usage.prices, name="prices")
app.command()(demo.demo)
app.command()(context.context)
app.command()(context.explain)
app.command()(requests.requests)
app.command()(requests.replay)
app.command()(requests.diff)
app.command()(usage.usage)
app.command()(tokens.token)
app.command()(migrations.migrate)
app.command()(migrations.status)
app.command()(migrations.drift)
app.command()(selftest.selftest)
app.command()(purge.purge)
app.command()(summarize.summarize)
app.command()(memories.memories)
app.command()(embed.embed)
