"""The sets of questions with labelled evidence, each as conversations to search in."""

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
class Question:
    """A question, and the places in its conversation of what answers it."""

    category: str
    text: str
    evidence: frozenset[int]


@dataclass(frozen=True)
class Conversation:
    """Messages as (role, text) in order, and questions about them."""

    messages: list[tuple[str, str]]
    questions: list[Question]


def bfcl_memory(data: Path) -> list[Conversation]:
    """Short turns of five personas."""
    folder = data / "recall/bfcl-memory"
    lines = (folder / "evidence.derived.jsonl").read_text().splitlines()
    labels = [json.loads(line) for line in lines]
    return [_persona(folder, labels, persona) for persona in PERSONAS]


def _persona(folder: Path, labels: list[dict[str, Any]], persona: str) -> Conversation:
    messages: list[tuple[str, str]] = []
    places: dict[str, int] = {}
    lines = (folder / f"memory_prereq_{persona}.json").read_text().splitlines()
    for session in map(json.loads, lines):
        for turn, batch in enumerate(session["question"]):
            for number, message in enumerate(batch):
                places[f"{session['id']}#{turn}.{number}"] = len(messages)
                messages.append((message["role"], message["content"]))
    return Conversation(
        messages,
        [
            Question(
                persona,
                label["question"],
                frozenset(places[message] for message in label["evidence"]),
            )
            for label in labels
            if label.get("scenario") == persona and label.get("evidence")
        ],
    )


def beam_100k(data: Path) -> list[Conversation]:
    """Long conversations with long answers; the end of a user's text is a marker."""
    folder = data / "recall/beam-100k"
    return [
        _chat(_load(path), _load(folder / f"{path.name[:2]}.probing_questions.json.gz"))
        for path in sorted(folder.glob("*.chat.json.gz"))
    ]


def _chat(batches: list[Any], asked: dict[str, Any]) -> Conversation:
    flat = [m for batch in batches for turn in batch["turns"] for m in turn]
    places = {message["id"]: place for place, message in enumerate(flat)}
    marker = re.compile(r"\s*->->\s*[\d,]+\s*$")
    questions = [
        Question(
            category,
            question["question"],
            frozenset(places[number] for number in _numbers(sources)),
        )
        for category, group in asked.items()
        for question in group
        if any(_numbers(sources := question.get("source_chat_ids")))
    ]
    return Conversation(
        [(m["role"], marker.sub("", m["content"])) for m in flat], questions
    )


def xquad(data: Path, language: str) -> list[Conversation]:
    """Paragraphs, and questions that one of them answers."""
    path = data / f"multilingual/xquad/xquad.{language}.json.gz"
    paragraphs = [p for article in _load(path)["data"] for p in article["paragraphs"]]
    return [
        Conversation(
            [("user", paragraph["context"]) for paragraph in paragraphs],
            [
                Question(language, question["question"], frozenset([place]))
                for place, paragraph in enumerate(paragraphs)
                for question in paragraph["qas"]
            ],
        )
    ]


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int):
        yield value


def _load(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as text:
        return json.load(text)
