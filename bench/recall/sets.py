"""The labelled sets: conversations with questions, and the messages that answer them.

Content stays in the folder of the data; nothing of it is part of the project.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PERSONAS = ("customer", "finance", "healthcare", "notetaker", "student")
LANGUAGES = ("en", "de", "ru", "ar", "hi", "th", "zh")


@dataclass(frozen=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True)
class Question:
    """A question, its kind, and the places (from 0) of the messages that answer it."""

    kind: str
    text: str
    evidence: frozenset[int]


@dataclass(frozen=True)
class Conversation:
    messages: list[Message]
    questions: list[Question]


def beam(folder: Path) -> list[Conversation]:
    """Read BEAM: 20 long chats with assistants, questions in ten abilities."""
    return [_beam(path) for path in sorted(folder.glob("recall/beam-100k/*.chat.*"))]


def _beam(path: Path) -> Conversation:
    rows = [m for batch in _read(path) for turn in batch["turns"] for m in turn]
    places = {row["id"]: place for place, row in enumerate(rows)}
    # User texts end in a mark of their place in the plan.
    messages = [
        Message(row["role"], re.sub(r"\s*->->[\s\d,]*$", "", row["content"]))
        for row in rows
    ]
    asked = _read(path.with_name(path.name.replace("chat", "probing_questions")))
    questions = [
        Question(kind, one["question"], frozenset(places[n] for n in ids))
        for kind, group in asked.items()
        for one in group
        if (ids := set(_numbers(one.get("source_chat_ids"))))
    ]
    return Conversation(messages, questions)


def bfcl(folder: Path) -> list[Conversation]:
    """Read the memory part of BFCL: five people who tell of themselves."""
    folder = folder / "recall/bfcl-memory"
    labels = [*map(json.loads, _lines(folder / "evidence.derived.jsonl"))]
    made = []
    for persona in PERSONAS:
        places: dict[str, int] = {}
        messages = []
        for row in map(json.loads, _lines(folder / f"memory_prereq_{persona}.json")):
            for number, turn in enumerate(row["question"]):
                for part, message in enumerate(turn):
                    places[f"{row['id']}#{number}.{part}"] = len(messages)
                    messages.append(Message(message["role"], message["content"]))
        questions = [
            Question(
                persona,
                label["question"],
                frozenset(places[place] for place in label["evidence"]),
            )
            for label in labels
            if label.get("scenario") == persona and label["evidence"]
        ]
        made.append(Conversation(messages, questions))
    return made


def xquad(folder: Path, language: str) -> list[Conversation]:
    """Read the paragraphs of XQuAD in one language as messages of one conversation."""
    data = _read(folder / f"multilingual/xquad/xquad.{language}.json.gz")["data"]
    paragraphs = [paragraph for article in data for paragraph in article["paragraphs"]]
    return [
        Conversation(
            [Message("user", paragraph["context"]) for paragraph in paragraphs],
            [
                Question(language, question["question"], frozenset([place]))
                for place, paragraph in enumerate(paragraphs)
                for question in paragraph["qas"]
            ],
        )
    ]


def _read(path: Path) -> Any:
    with gzip.open(path) as file:
        return json.load(file)


def _lines(path: Path) -> Iterator[str]:
    return iter(path.read_text().splitlines())


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict):
        yield from _numbers(list(value.values()))
    elif isinstance(value, list):
        for one in value:
            yield from _numbers(one)
