"""Fit the weights of convo.estimate_tokens on the fitting half of the data folder.

python bench/tokens/fit.py --data DIR

Prints the weights in thousandths of a token, to be copied into estimate_tokens.sql by a
new migration. Needs quicktok-v1, numpy, scipy and PyYAML; no database.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

import numpy as np
from corpus import Conversation, conversations
from scipy.optimize import nnls

# The same classes as in estimate_tokens.sql, in the same order.
SCRIPTS = {
    "chinese, japanese, korean": "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3",
    "ukrainian": "іїєґІЇЄҐ",
    "cyrillic": "\u0400-\u052f",
    "hebrew, thai": "\u0590-\u05ff\u0e00-\u0e7f",
    "arabic, indic, greek, ...": "\u0370-\u03ff\u0530-\u0dff\u1000-\u10ff\u1780-\u17ff",
    "latin with marks": "\u00c0-\u024f\u1e00-\u1eff",
    "marks on their own": "\u0300-\u036f",
}
NAMES = ["character", "capital", "sign", "k", "z", "a", *SCRIPTS, "byte of the rest"]
ENGLISH = 3.0  # how much more an English source weighs than one of another language


def counts(text: str) -> list[int]:
    """What estimate_tokens counts in a text, in the order of NAMES."""
    text = text.replace("  ", " ").replace("--", "-").replace("**", "*")
    capitals = len(re.findall("[A-Z]", text))
    signs = len(re.findall(r"[^A-Za-z \u0080-\U0010ffff]", text))
    found = [len(text), capitals, signs, *(text.count(letter) for letter in "kza")]
    rest = re.sub("[\u0000-\u007f]+", "", text)
    for letters in SCRIPTS.values():
        others = re.sub(f"[{letters}]+", "", rest)
        found.append(len(rest) - len(others))
        rest = others
    return [*found, len(rest.encode())]


def source_family(conversation: Conversation) -> tuple[str, str, str]:
    """Conversations of one family weigh as much together as those of another."""
    family = re.split(r"[ /:#]", re.sub(r"^\d+\.", "", conversation.source))[0]
    return conversation.kind, conversation.lang, family


def fit(fitted: list[Conversation]) -> list[float]:
    """Non-negative weights with the least squared relative error."""
    sizes = Counter(source_family(conversation) for conversation in fitted)
    rows = []
    goals = []
    for conversation in fitted:
        weight = (ENGLISH if conversation.lang == "en" else 1.0) ** 0.5
        weight /= sizes[source_family(conversation)] ** 0.5
        total = sum(conversation.counts)
        row = np.sum([counts(text) for text in conversation.texts], axis=0)
        rows.append(row * weight / total)
        goals.append(weight)
    return [float(w) for w in nnls(np.array(rows), np.array(goals))[0]]


def main() -> None:
    """Print one weight a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    found = conversations(parser.parse_args().data)
    weights = fit([conversation for conversation in found if not conversation.held_out])
    for name, weight in zip(NAMES, weights, strict=True):
        print(f"{1000 * weight:6.0f}  {name}")


if __name__ == "__main__":
    main()
