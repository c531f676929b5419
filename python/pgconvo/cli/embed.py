"""pgconvo embed."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from pgconvo import Client, EmbeddingRun
from pgconvo import embed as embed_

from ._common import DsnOption, Tenant, connect, console, one_line
from ._workers import (
    Command,
    CommandFailed,
    Interval,
    Once,
    PageSize,
    Timeout,
    progress,
    repeat,
    run_command,
)

Model = Annotated[str, typer.Option(help="The name that searches will give.")]


def embed(
    tenant: Tenant,
    model: Model,
    command: Command,
    dsn: DsnOption = None,
    once: Once = False,
    interval: Interval = 10,
    page_size: PageSize = 100,
    timeout: Timeout = 120,
) -> None:
    """Embed the messages of a tenant that have no embedding yet.

    The command gets a line {"content": "..."} for each message and prints a line
    [0.1, ...] for each, in the same order. If it fails, its messages are tried again
    after 10 minutes; with --once the exit code is 1. Any number may run at once.
    """

    def compute(texts: list[str]) -> list[list[float]]:
        lines = "".join(json.dumps({"content": text}) + "\n" for text in texts)
        try:
            printed = run_command(command, lines, timeout).splitlines()
            vectors = [[float(part) for part in json.loads(line)] for line in printed]
        except (TypeError, ValueError) as error:
            raise CommandFailed("it printed a line that isn't a vector") from error
        return vectors

    def work() -> bool:
        with progress() as status:
            run = embed_(
                client,
                tenant,
                model,
                compute,
                page_size=page_size,
                progress=lambda run: status.update(_totals(run)),
            )
        for claims, error in run.failed:
            what = f"{len(claims)} messages" if len(claims) > 1 else "a message"
            typer.echo(f"{what}: {one_line(str(error))}", err=True)
        if once or run.stored or run.failed:
            console.print(_totals(run))
        return not run.failed

    with connect(dsn) as conn:
        client = Client(conn)
        repeat(work, once, interval)


def _totals(run: EmbeddingRun) -> str:
    failed = sum(len(claims) for claims, _ in run.failed)
    return f"embedded: {run.stored:,}; gone: {run.skipped:,}; failed: {failed:,}"
