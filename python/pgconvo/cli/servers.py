"""pgconvo server: a local PostgreSQL that stays."""

from __future__ import annotations

import typer

from pgconvo import server

from ._common import console

app = typer.Typer(no_args_is_help=True, help="Keep a local PostgreSQL server.")


@app.command()
def start() -> None:
    """Start it, made the first time, and print its DSN."""
    print(server.start_kept().dsn())


@app.command()
def stop() -> None:
    """Stop it; its data stays."""
    console.print("stopped" if server.stop_kept() else "it wasn't running")


@app.command()
def status() -> None:
    """Print its DSN; exit code 1 when it isn't running."""
    running = server.kept()
    if running is None:
        console.print(f"not running; its folder is {server.home()}")
        raise typer.Exit(1)
    print(running.dsn())
