"""The pgconvo command."""

from __future__ import annotations

import typer

from . import context, demo, embed, migrations, purge, selftest, servers
from ._common import Group

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="LLM conversation history in PostgreSQL.",
)
app.add_typer(servers.app, name="server")
app.command()(demo.demo)
app.command()(context.context)
app.command()(context.explain)
app.command()(migrations.migrate)
app.command()(migrations.status)
app.command()(migrations.drift)
app.command()(selftest.selftest)
app.command()(purge.purge)
app.command()(embed.embed)
