"""pgconvo selftest."""

from __future__ import annotations

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from pgconvo import selftest as selftest_

from ._common import Dsn, connect, console


def selftest(dsn: Dsn = None) -> None:
    """Check an installation from the inside; exit code 1 if anything is wrong.

    Works on a database in use: all is one transaction that is rolled back. The login
    must be allowed to SET ROLE to convo_app, convo_service and convo_maintainer.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("check", ratio=1)
    table.add_column("result")
    table.add_column("ms", justify="right")
    failed = 0
    with connect(dsn) as conn:
        for result in selftest_.run(conn):
            name = Text(result.name)
            if not result.passed:
                failed += 1
                name.append(
                    f"\nexpected: {result.expected}\nseen: {result.seen}", "red"
                )
            verdict = (
                Text("ok", "green") if result.passed else Text("FAILED", "bold red")
            )
            table.add_row(name, verdict, f"{result.seconds * 1000:.1f}")
    console.print(table)
    if failed:
        console.print(f"{failed} of {len(selftest_.CHECKS)} checks failed")
        raise typer.Exit(1)
    console.print(f"all {len(selftest_.CHECKS)} checks passed; nothing was left behind")
