"""search_similar and search_hybrid: what is found, in which order, by whom."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import SECRET, vector
from .test_embeddings import MODEL, X, Y, edit, seqs, similar, store

pytestmark = pytest.mark.usefixtures("vector")


def hybrid(caller, query, embedding=X, **options):
    return caller.rows(
        "search_hybrid",
        query=query,
        embedding=vector(embedding),
        model=MODEL,
        **options,
    )


def towards(degrees):
    """A vector so many degrees away from X."""
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees)), 0.0]


@pytest.fixture
def spread(ann, conversation_id):
    """Messages 1 to 4, each further away from X than the one before."""
    for seq, word in enumerate(["apple", "banana", "cherry", "apple pie"], 1):
        ann.row(
            "append_message",
            conversation_id=conversation_id,
            role="user",
            content=f"{SECRET} {word}",
        )
        store(ann, conversation_id, seq, towards(20 * seq))
    return conversation_id


def test_the_nearest_come_first(ann, spread):
    rows = similar(ann)
    assert seqs(rows) == [1, 2, 3, 4]
    assert [row["score"] for row in rows] == pytest.approx(
        [math.cos(math.radians(20 * seq)) for seq in (1, 2, 3, 4)], abs=1e-6
    )
    assert rows[0] == {
        "conversation_id": spread,
        "seq": 1,
        "role": "user",
        "snippet": f"{SECRET} apple",
        "score": rows[0]["score"],
        "created_at": ann.live(spread)[0]["created_at"],
    }


def test_the_length_of_a_vector_does_not_matter(ann, spread):
    longer = similar(ann, [7.0, 0.0, 0.0])
    assert [row["score"] for row in longer] == pytest.approx(
        [row["score"] for row in similar(ann)]
    )


@pytest.mark.parametrize(("page_size", "found"), [(0, []), (2, [1, 2])])
def test_a_page(ann, spread, page_size, found):
    assert seqs(similar(ann, page_size=page_size)) == found
    assert len(hybrid(ann, "apple", page_size=page_size)) == len(found)


@pytest.mark.parametrize("page_size", [None, -1])
def test_a_page_size_is_a_number(ann, spread, fails, page_size):
    with fails("22023", argument="page_size"):
        similar(ann, page_size=page_size)
    with fails("22023", argument="page_size"):
        hybrid(ann, "apple", page_size=page_size)


def test_deleted_and_edited_messages_take_no_place(ann, spread):
    ann.row("delete_message", conversation_id=spread, seq=1)
    edit(ann, spread, 2)
    assert seqs(similar(ann, page_size=2)) == [3, 4]
    assert 1 not in seqs(hybrid(ann, "apple"))


def test_a_restored_message_is_found_again(ann, spread):
    ann.row("delete_message", conversation_id=spread, seq=1)
    ann.row("restore_message", conversation_id=spread, seq=1)
    assert seqs(similar(ann)) == [1, 2, 3, 4]


def test_one_conversation_or_all(ann, spread):
    other = ann.create()
    ann.say(other, 1)
    store(ann, other, 1, X)
    assert [row["conversation_id"] for row in similar(ann, page_size=2)] == [
        other,
        spread,
    ]
    assert seqs(similar(ann, conversation_id=spread)) == [1, 2, 3, 4]


def test_a_user_without_embeddings_finds_nothing(ann, ben, spread):
    assert similar(ben) == []
    assert hybrid(ben, "apple") == []


def test_nobody_finds_what_is_not_theirs(ann, ben, hostile, fails, spread):
    foreign = hostile.create()
    hostile.say(foreign, 1)
    store(hostile, foreign, 1, Y)
    for other in (ben, hostile):
        assert similar(other, conversation_id=spread) == []
        assert hybrid(other, "apple", conversation_id=spread) == []
    assert seqs(similar(hostile)) == [1]


def test_the_tenants_own_roles_find_all(service, reader, spread):
    for caller in (service, reader):
        assert seqs(similar(caller)) == [1, 2, 3, 4]
        assert seqs(hybrid(caller, "cherry"))[0] == 3


def test_a_model_that_nobody_stored(ann, fails, spread):
    for function in ("search_similar", "search_hybrid"):
        query = {"query": "apple"} if function == "search_hybrid" else {}
        with fails("22023", argument="model"):
            ann.rows(function, embedding=vector(X), model="other", **query)


def test_hybrid_prefers_what_both_halves_have(ann, spread):
    assert seqs(hybrid(ann, "apple"))[0] == 1
    assert seqs(hybrid(ann, "cherry"))[0] == 3


def test_hybrid_marks_the_words(ann, spread):
    assert hybrid(ann, "cherry")[0]["snippet"] == f"{SECRET} ⟦cherry⟧"


@pytest.mark.parametrize("query", ["", "zebra", None, "' & ! ((", "的"])
def test_hybrid_without_words_is_similar(ann, spread, query):
    assert seqs(hybrid(ann, query)) == seqs(similar(ann))


def test_hybrid_without_embeddings_is_by_words(ann, spread):
    other = ann.create()
    ann.say(other, 1, 1)
    found = ann.rows("search_messages", query=f"{SECRET} 2", conversation_id=other)
    assert seqs(hybrid(ann, f"{SECRET} 2", conversation_id=other)) == seqs(found)
    assert found


@settings(
    max_examples=30, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(
    st.lists(
        st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3), min_size=1,
        max_size=8,
    )
)  # fmt: skip
def test_it_is_exact(ann, vectors):
    """The order is that of cosines worked out here."""

    def length(v):
        return math.sqrt(sum(part * part for part in v))

    vectors = [v for v in vectors if length(v) > 1e-3]
    conversation_id = ann.create()
    ann.say(conversation_id, *[1] * len(vectors))
    for seq, numbers in enumerate(vectors, 1):
        store(ann, conversation_id, seq, numbers)
    expected = [numbers[0] / length(numbers) for numbers in vectors]
    if not vectors:
        return
    rows = similar(ann, conversation_id=conversation_id)
    assert sorted(seqs(rows)) == list(range(1, len(vectors) + 1))
    for row in rows:
        assert row["score"] == pytest.approx(expected[row["seq"] - 1], abs=1e-5)
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
