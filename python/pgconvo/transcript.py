"""Read a file of chat messages as OpenAI writes them: a JSON array, an object with
"messages", or JSON Lines with one message a line.

Only the shape of the file is checked here. Whether a message is valid is for the
database to say; `Transcript.place` turns the index that it names into a place.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from .errors import InvalidMessage, PgconvoError


class TranscriptError(PgconvoError):
    """The file can't be read as chat messages; the message says where and why."""


@dataclass(frozen=True)
class Transcript:
    """Chat messages as one JSON array.

    ``lines`` are the messages' line numbers in JSON Lines, else empty.
    """

    name: str
    messages: str
    count: int
    lines: Sequence[int] = ()

    def place(self, index: int) -> str:
        """Say where the message of an index, which starts at 0, stands in the file."""
        if self.lines:
            return f"{self.name}, line {self.lines[index]}"
        return f"{self.name}, message {index + 1} of {self.count}"

    def error(self, error: InvalidMessage) -> TranscriptError:
        """Say in terms of the file what the database found wrong (PC050)."""
        place, reason = self.place(error.detail["index"]), error.detail["reason"]
        return TranscriptError(
            f"{place}: {reason}", hint="Each must be an OpenAI chat message."
        )


def read(path: Path) -> Transcript:
    """Read a file. Raises TranscriptError."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise TranscriptError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TranscriptError(f"{path}: not UTF-8 at byte {error.start}") from error
    return parse(path.name, text)


def parse(name: str, text: str) -> Transcript:
    """Read a file's text. Raises TranscriptError."""
    # Not splitlines(), which also splits at characters that JSON strings may hold.
    numbered = [
        (number, line)
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
    ]
    if not numbered:
        raise TranscriptError(f"{name}: the file is empty")
    if len(numbered) > 1 and _is_object(numbered[0][1]):
        return _json_lines(name, numbered)
    value = _load(name, text)
    if isinstance(value, dict) and "messages" in value:
        value = value["messages"]
        text = json.dumps(value)
    if isinstance(value, dict):
        value, text = [value], f"[{text}]"
    if not isinstance(value, list):
        raise TranscriptError(
            f'{name}: neither an array of messages nor an object with "messages"'
        )
    if not value:
        raise TranscriptError(f"{name}: there are no messages in it")
    return Transcript(name, text, len(value))


def _json_lines(name: str, numbered: list[tuple[int, str]]) -> Transcript:
    for number, line in numbered:
        value = _load(name, line, number)
        if isinstance(value, dict) and "messages" in value:
            raise TranscriptError(
                f"{name}, line {number}: a whole conversation; one file is one "
                "conversation, with one message a line"
            )
    lines = [line for _, line in numbered]
    text = "[" + ",\n".join(lines) + "]"
    return Transcript(name, text, len(lines), [number for number, _ in numbered])


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _load(name: str, text: str, line: int | None = None) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        number = line or error.lineno
        raise TranscriptError(
            f"{name}, line {number}, column {error.colno}: not JSON: {error.msg}"
        ) from error
    except (ValueError, RecursionError) as error:
        place = f"{name}, line {line}" if line else name
        raise TranscriptError(f"{place}: not JSON: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")
