"""Texts with exact o200k token counts, read from the data folder.

Half of the conversations is for fitting. The other half and whole sources are held out.
Needs quicktok-v1 and PyYAML.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quicktok
import yaml

LANGUAGES = {
    "arb": "ar", "ben": "bn", "cmn_hans": "zh", "cmn_hant": "zh-Hant", "deu_1996": "de",
    "eng": "en", "fra": "fr", "heb": "he", "hin": "hi", "ind": "id", "ita": "it",
    "jav": "jv", "jpn": "ja", "kor": "ko", "nld": "nl", "pol": "pl", "por_BR": "pt",
    "rus": "ru", "spa": "es", "sun": "su", "swh": "sw", "tam": "ta", "tha": "th",
    "tur": "tr", "ukr": "uk", "vie": "vi",
}  # fmt: skip
GROUP = 10  # paragraphs that make one "conversation" of prose
LEAST = 50  # tokens of a conversation that counts
Texts = tuple[str, str, str, bool, list[str]]  # a Conversation before it is counted


@dataclass
class Conversation:
    """Some texts that belong together, and the number of o200k tokens of each."""

    kind: str  # prose, chat, agent, wire, code, json-..., emoji
    lang: str  # ISO 639-1, "" for emoji
    source: str
    held_out: bool  # not to be fitted on
    texts: list[str]
    counts: list[int]


def _json(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def _lines(path: Path) -> list[Any]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _strings(node: Any, keys: frozenset[str]) -> Iterator[str]:
    """Every string under one of these keys, in document order."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in keys and isinstance(value, str):
                yield value
            else:
                yield from _strings(value, keys)
    elif isinstance(node, list):
        for value in node:
            yield from _strings(value, keys)


def _threads(message: dict[str, Any], before: list[str]) -> Iterator[list[str]]:
    thread = [*before, message["text"]]
    if not message.get("replies"):
        yield thread
    for reply in message.get("replies", []):
        yield from _threads(reply, thread)


def _calibration(data: Path) -> Iterator[Texts]:
    """Prose paragraphs, code, tool calls and results, interface texts, emoji."""
    kinds = {
        "prose": "prose", "code-python": "code", "code-observation": "code",
        "json-i18n": "json-i18n", "emoji": "emoji",
    }  # fmt: skip
    groups: dict[tuple[str, str, str], list[str]] = {}
    for row in _lines(data / "multilingual/token_calibration.jsonl.gz"):
        kind = kinds.get(row["kind"])
        if kind is None:
            continue  # these come whole, from their own sources below
        name, _, number = row["source"].partition("#")
        if kind in ("prose", "emoji"):
            name += f"#{int(number) // GROUP}"
        lang = LANGUAGES.get(row["lang"], "" if kind == "emoji" else row["lang"])
        groups.setdefault((kind, lang, name), []).append(row["text"])
    for place, ((kind, lang, name), texts) in enumerate(groups.items()):
        lang = "en" if kind == "code" else lang
        yield kind, lang, name, place % 2 == 1, texts
        if lang == "vi":  # comes decomposed, is mostly typed composed
            texts = [unicodedata.normalize("NFC", text) for text in texts]
            yield kind, "vi", name + " NFC", place % 2 == 1, texts


def _tau_bench(data: Path) -> Iterator[Texts]:
    runs = _json(data / "wire-formats/tau-bench/gpt-4o-airline.json.gz")
    for place, run in enumerate(runs):
        chat: list[str] = []
        arguments: list[str] = []
        results: list[str] = []
        for message in run["traj"]:
            if message["role"] == "tool":
                results.append(message["content"])
            elif message.get("content"):
                chat.append(message["content"])
            for call in message.get("tool_calls") or []:
                arguments.append(call["function"]["arguments"])
        name = f"tau-bench {place}"
        odd = place % 2 == 1
        yield "chat", "en", name, odd, chat
        yield "json-arguments", "en", name, odd, arguments
        yield "json-results", "en", name, odd, results


def _recorded(data: Path) -> Iterator[Texts]:
    """Chats from other programs and providers: held out as a whole."""
    keys = frozenset({"content", "text", "thinking"})
    exports = _json(data / "trees/openwebui-importer/claude_example.json.gz")
    for place, export in enumerate(exports):
        texts = [message["text"] for message in export["chat_messages"]]
        yield "chat", "en", f"claude export {place}", True, texts
    for name in ("gpt_example.json", "grok_example.json", "aistudio_example.json"):
        texts = list(_strings(_json(data / "trees/openwebui-importer" / name), keys))
        yield "chat", "en", name, True, texts
    for path in sorted((data / "trees/claude-code").glob("*.jsonl")):
        yield "agent", "en", path.name, True, list(_strings(_lines(path), keys))
    for path in sorted((data / "wire-formats/pydantic-ai").glob("*.tar.gz")):
        with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as archive:
            for member in archive:
                file = archive.extractfile(member)
                if file is None:
                    continue
                recording = yaml.load(file, yaml.CSafeLoader)
                texts = []
                for exchange in recording["interactions"]:
                    body = exchange["request"].get("parsed_body")
                    texts += _strings(body, keys | {"input", "description"})
                yield "wire", "en", f"{path.name} {member.name}", True, texts


def _recall(data: Path) -> Iterator[Texts]:
    content = frozenset({"content"})
    chats = (data / "recall/beam-100k").glob("*.chat.json.gz")
    for place, path in enumerate(sorted(chats)):
        texts = list(_strings(_json(path), content))
        yield "chat", "en", path.name, place % 2 == 1, texts
    for path in sorted((data / "recall/bfcl-memory").glob("memory_prereq_*.json")):
        yield "chat", "en", path.name, True, list(_strings(_lines(path), content))


def _oasst(data: Path) -> Iterator[Texts]:
    trees = _lines(data / "trees/oasst/en_100_tree.jsonl.gz")
    for place, tree in enumerate(trees):
        for number, thread in enumerate(_threads(tree["prompt"], [])):
            yield "chat", "en", f"oasst {place} {number}", place % 2 == 1, thread


def _xquad(data: Path) -> Iterator[Texts]:
    """The same articles in 7 languages."""
    for path in sorted((data / "multilingual/xquad").glob("xquad.*.json.gz")):
        lang = path.name.split(".")[1]
        for place, article in enumerate(_json(path)["data"]):
            texts = [paragraph["context"] for paragraph in article["paragraphs"]]
            for paragraph in article["paragraphs"]:
                texts += [question["question"] for question in paragraph["qas"]]
            yield "prose", lang, f"xquad {article['title']}", place % 2 == 1, texts


def conversations(data: Path) -> list[Conversation]:
    """All conversations with at least LEAST tokens, counted with quicktok."""
    encoding = quicktok.get_encoding("o200k_base")
    found = []
    for read in (_calibration, _tau_bench, _recorded, _recall, _oasst, _xquad):
        for kind, lang, source, held_out, texts in read(data):
            counts = [len(encoding.encode_ordinary(text)) for text in texts]
            if sum(counts) >= LEAST:
                found.append(Conversation(kind, lang, source, held_out, texts, counts))
    return found
