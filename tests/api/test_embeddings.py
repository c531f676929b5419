"""store_embedding and claim_embeddings: what a worker gets, and what becomes of it."""

from __future__ import annotations

import pytest

from .conftest import SECRET, vector

pytestmark = pytest.mark.usefixtures("vector")

MODEL = "minilm"
X, Y = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]


def store(caller, conversation_id, seq, embedding=X, model=MODEL):
    caller.rows(
        "store_embedding",
        conversation_id=conversation_id,
        seq=seq,
        model=model,
        embedding=vector(embedding),
    )


def claim(service, **options):
    return service.rows("claim_embeddings", model=MODEL, **options)


def seqs(rows):
    return [row["seq"] for row in rows]


def similar(caller, embedding=X, **options):
    return caller.rows(
        "search_similar", embedding=vector(embedding), model=MODEL, **options
    )


def expire(db):
    """End all claims, as if 10 minutes had passed."""
    db.execute(
        "update convo.embedding set claimed_until = '2001-01-01'"
        " where claimed_until is not null"
    )


def edit(caller, conversation_id, seq):
    caller.row(
        "edit_message", conversation_id=conversation_id, seq=seq, content="new text"
    )


def test_a_claim_gives_each_message_with_its_text(ann, service, conversation_id):
    ann.say(conversation_id, 1, 1)
    assert claim(service) == [
        {
            "conversation_id": conversation_id,
            "seq": seq,
            "revision": 1,
            "content": f"{SECRET} {seq}",
        }
        for seq in (1, 2)
    ]


def test_what_is_claimed_is_not_given_again(ann, service, conversation_id):
    ann.say(conversation_id, 1, 1, 1)
    assert seqs(claim(service, page_size=2)) == [1, 2]
    assert seqs(claim(service)) == [3]
    assert claim(service) == []


def test_a_claim_that_ended_is_given_again(ann, service, db, conversation_id):
    ann.say(conversation_id, 1)
    claim(service)
    expire(db)
    assert seqs(claim(service)) == [1]


def test_what_is_stored_is_not_claimed(ann, service, db, conversation_id):
    ann.say(conversation_id, 1, 1)
    claim(service)
    store(service, conversation_id, 1)
    expire(db)
    assert seqs(claim(service)) == [2]


def test_a_conversation_that_was_done_is_looked_into_again(
    ann, service, conversation_id
):
    ann.say(conversation_id, 1)
    store(service, conversation_id, 1)
    assert claim(service) == []
    ann.say(conversation_id, 1)
    assert seqs(claim(service)) == [2]


def test_an_edited_message_is_claimed_with_its_new_text(ann, service, conversation_id):
    ann.say(conversation_id, 1)
    store(service, conversation_id, 1)
    assert claim(service) == []
    edit(ann, conversation_id, 1)
    (row,) = claim(service)
    assert (row["revision"], row["content"]) == (2, "new text")


def test_a_message_edited_while_its_old_text_was_embedded(
    ann, service, db, conversation_id
):
    ann.say(conversation_id, 1)
    claim(service)
    edit(ann, conversation_id, 1)
    store(service, conversation_id, 1)
    assert similar(ann) == []
    assert seqs(claim(service)) == [1]
    store(service, conversation_id, 1)
    assert seqs(similar(ann)) == [1]


def test_a_restored_message_is_claimed(ann, service, conversation_id):
    ann.say(conversation_id, 1)
    ann.row("delete_message", conversation_id=conversation_id, seq=1)
    assert claim(service) == []
    ann.row("restore_message", conversation_id=conversation_id, seq=1)
    assert seqs(claim(service)) == [1]


def test_blank_and_system_messages_are_left_out(ann, service, conversation_id):
    ann.append(
        conversation_id,
        [
            {"role": "system", "content": SECRET},
            {"role": "user", "content": " \n"},
            {"role": "user", "content": SECRET},
        ],
    )
    assert seqs(claim(service)) == [3]


def test_each_model_has_its_own_claims(ann, service, conversation_id):
    ann.say(conversation_id, 1)
    claim(service)
    assert seqs(service.rows("claim_embeddings", model="other")) == [1]


@pytest.mark.parametrize("page_size", [None, -1])
def test_a_page_size_is_a_number(service, fails, page_size):
    with fails("22023", argument="page_size"):
        claim(service, page_size=page_size)


def test_a_page_of_nothing(ann, service, conversation_id):
    ann.say(conversation_id, 1)
    assert claim(service, page_size=0) == []


@pytest.mark.parametrize("model", ["", None, "x" * 256])
def test_a_model_has_a_name(ann, service, fails, conversation_id, model):
    ann.say(conversation_id, 1)
    with fails("22023", argument="model"):
        service.rows("claim_embeddings", model=model)
    with fails("22023", argument="model"):
        store(ann, conversation_id, 1, model=model)


def test_only_the_tenants_own_messages_are_claimed(
    ann, service, hostile_service, conversation_id
):
    ann.say(conversation_id, 1)
    assert claim(hostile_service) == []
    assert seqs(claim(service)) == [1]


def test_storing_again_replaces(ann, conversation_id):
    ann.say(conversation_id, 1)
    store(ann, conversation_id, 1, X)
    store(ann, conversation_id, 1, Y)
    (row,) = similar(ann, Y)
    assert row["score"] == 1


@pytest.mark.parametrize(
    ("embedding", "reason"),
    [
        (None, "empty"),
        ([], "empty"),
        ([0.0, 0.0], "too short or too long a vector"),
        ([1e-30], "too short or too long a vector"),
        ([3e38, 3e38], "too short or too long a vector"),
        ([1.0, None], "a null"),
        ([1.0, float("nan")], "a number that is not finite"),
        ([1.0, float("inf")], "a number that is not finite"),
        ([-float("inf")], "a number that is not finite"),
        ("{{1},{1}}", "more than one dimension"),
        ([1.0] * 16001, "over 16000 numbers"),
    ],
)
def test_bad_embeddings_are_refused(ann, fails, conversation_id, embedding, reason):
    ann.say(conversation_id, 1)
    store(ann, conversation_id, 1)
    with fails("22023", argument="embedding", reason=reason):
        store(ann, conversation_id, 1, embedding)
    with fails("22023", argument="embedding", reason=reason):
        similar(ann, embedding)
    with fails("22023", argument="embedding", reason=reason):
        ann.rows("search_hybrid", query="a", embedding=vector(embedding), model=MODEL)


def test_the_longest_embedding(ann, conversation_id):
    ann.say(conversation_id, 1)
    store(ann, conversation_id, 1, [1.0] * 16000)
    assert seqs(similar(ann, [1.0] * 16000)) == [1]


def test_the_first_embedding_says_how_long_all_are(
    ann, ben, hostile, fails, conversation_id
):
    ann.say(conversation_id, 1)
    store(ann, conversation_id, 1)
    other = ben.create()
    ben.say(other, 1)
    with fails("22023", argument="embedding", dimension=2, expected=3):
        store(ben, other, 1, [1.0, 0.0])
    with fails("22023", argument="embedding", dimension=2, expected=3):
        similar(ann, [1.0, 0.0])
    foreign = hostile.create()
    hostile.say(foreign, 1)
    store(hostile, foreign, 1, [1.0, 0.0])
    assert seqs(similar(hostile, [1.0, 0.0])) == [1]


def test_storing_for_what_is_not_there(ann, fails, conversation_id):
    ann.say(conversation_id, 1)
    with fails("PC002", seq=2):
        store(ann, conversation_id, 2)
    ann.row("delete_message", conversation_id=conversation_id, seq=1)
    with fails("PC002", seq=1):
        store(ann, conversation_id, 1)
    ann.value("delete_conversation", conversation_id=conversation_id)
    with fails("PC012"):
        store(ann, conversation_id, 1)


def test_nobody_stores_for_somebody_else(ann, outsider, fails, conversation_id):
    ann.say(conversation_id, 1)
    with fails("PC001", conversation_id=conversation_id):
        store(outsider, conversation_id, 1)


def test_who_does_not_say_who_they_are(unknown, fails, conversation_id):
    with fails("PC030"):
        store(unknown, conversation_id, 1)
    with fails("PC030"):
        similar(unknown)


def test_embeddings_go_to_the_new_owner(ann, ben, service, conversation_id):
    ann.say(conversation_id, 1)
    store(ann, conversation_id, 1)
    service.row(
        "transfer_conversation", conversation_id=conversation_id, to_user_id="ben"
    )
    assert seqs(similar(ben)) == [1]
    assert similar(ann) == []
    assert claim(service) == []


def test_a_fork_has_the_embeddings_of_what_it_copies(ann, service, conversation_id):
    ann.say(conversation_id, 1, 1, 1)
    store(ann, conversation_id, 1)
    store(ann, conversation_id, 2)
    fork = ann.value(
        "fork_conversation", conversation_id=conversation_id, through_seq=1
    )
    assert seqs(similar(ann, conversation_id=fork)) == [1]


def test_embeddings_go_with_the_conversation(ann, service, db, conversation_id):
    ann.say(conversation_id, 1, 1)
    store(ann, conversation_id, 1)
    claim(service)
    store(ann, conversation_id, 2)
    claim(service)
    ann.value("delete_conversation", conversation_id=conversation_id)
    for table in ("embedding", "embedding_progress"):
        assert db.execute(f"select count(*) from convo.{table}").fetchone() == (0,)


def test_embeddings_go_with_the_purge(ann, service, maintainer, db, conversation_id):
    ann.say(conversation_id, 1)
    store(ann, conversation_id, 1)
    claim(service)
    service.row("set_retention", retention_class="standard", max_age="1 day")
    db.execute(
        "update convo.conversation"
        " set created_at = '2001-01-01', updated_at = '2001-01-01'"
    )
    assert maintainer.row("purge")["conversations"] == 1
    assert db.execute("select count(*) from convo.embedding").fetchone() == (0,)
