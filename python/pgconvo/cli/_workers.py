"""What the workers share: a command that does the work, progress, and when to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status

from pgconvo.errors import PgconvoError

Command = Annotated[
    str,
    typer.Option(
        help="A shell command: gets JSON on stdin, prints the answer.",
        metavar="COMMAND",
    ),
]
Once = Annotated[bool, typer.Option("--once", help="Stop when nothing is left to do.")]
Interval = Annotated[
    float, typer.Option(min=0.1, help="Seconds to wait when nothing is left to do.")
]
PageSize = Annotated[
    int, typer.Option(min=1, max=1000, help="The most that is claimed at once.")
]
Timeout = Annotated[
    float, typer.Option(min=0.1, help="Seconds that one command may take.")
]


class CommandFailed(PgconvoError):
    """A worker's command ended with an error, took too long, or printed garbage."""


def run_command(command: str, stdin: str, timeout: float) -> str:
    """Give a shell command some text and return what it prints, which is UTF-8.

    What it writes to stderr is shown as it is. timeout: seconds.
    Errors: CommandFailed.
    """
    # A session of its own, so that what the shell has started ends with it.
    with subprocess.Popen(
        command,
        shell=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(stdin.encode(), timeout)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise CommandFailed(
                    f"it took longer than {timeout:g} seconds"
                ) from error
            raise
    if process.returncode != 0:
        raise CommandFailed(f"it ended with exit code {process.returncode}")
    try:
        return output.decode()
    except UnicodeDecodeError as error:
        raise CommandFailed("it printed something that isn't UTF-8") from error


def progress() -> AbstractContextManager[Status]:
    """Show what was done so far, on stderr, so that cron's mail has the totals only."""
    return Console(stderr=True).status("working")


def repeat(work: Callable[[], bool], once: bool, interval: float) -> None:
    """Do the work once, or again and again until the user stops it.

    work: does all that there is, and returns whether all of it succeeded.
    Exit code 1 if it was done once and failed.
    """
    while True:
        succeeded = work()
        if once:
            if not succeeded:
                raise typer.Exit(1)
            return
        time.sleep(interval)
