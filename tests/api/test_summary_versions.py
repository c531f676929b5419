"""What becomes of summaries when messages change before, under or after them."""

from __future__ import annotations

import pytest

SECRET = "sesame secret"


@pytest.fixture
def talk(ann, conversation_id):
    """Five messages of 10 tokens, the last one a user's."""
    for number in range(5):
        ann.say(conversation_id, 10, role=("user", "assistant")[number % 2])
    return conversation_id


@pytest.fixture
def claim(service):
    """Claim what is due in the tenant, with a rule that says it is."""

    def claim():
        service.row("set_policy", name="default", summary_threshold=1)
        return service.rows("claim_summaries")

    return claim


def clear(ann, conversation_id, from_seq=1):
    ann.value("delete_messages", conversation_id=conversation_id, from_seq=from_seq)


def stale(service):
    rows = service.rows("list_stale_summaries")
    return [(row["through_seq"], row["changed_seq"]) for row in rows]


def told(ann, conversation_id):
    return [item["content"] for item in ann.context(conversation_id)]


def test_what_was_cleared_never_comes_back_by_a_rewind(ann, talk):
    ann.summarise(talk, 4, content=SECRET)
    clear(ann, talk)
    for number in range(6):
        ann.say(talk, 10, role=("user", "assistant")[number % 2])
    ann.summarise(talk, 9)
    clear(ann, talk, 9)
    ann.say(talk, 10)
    assert SECRET not in told(ann, talk)


def test_what_was_cleared_never_comes_back_by_a_fork(ann, talk):
    ann.summarise(talk, 4, content=SECRET)
    clear(ann, talk, 2)
    ann.say(talk, 10, 10)
    fork = ann.value("fork_conversation", conversation_id=talk)
    assert told(ann, fork) == told(ann, talk)
    assert SECRET not in told(ann, fork)


def test_a_summary_can_end_where_a_dropped_one_did(ann, talk):
    ann.summarise(talk, 4, content=SECRET)
    clear(ann, talk)
    for seq in range(1, 6):
        ann.row("restore_message", conversation_id=talk, seq=seq)
    ann.summarise(talk, 4, content="sesame anew")
    assert "sesame anew" in told(ann, talk)
    assert SECRET not in told(ann, talk)


def test_requests_replay_with_the_version_that_was_sent(ann, talk):
    bodies = []
    for text in (SECRET, "sesame anew"):
        ann.summarise(talk, 4, content=text)
        bodies.append(ann.row("prepare_request", conversation_id=talk, format="openai"))
        clear(ann, talk)
        for seq in range(1, 6):
            ann.row("restore_message", conversation_id=talk, seq=seq)
    for row, text in zip(bodies, (SECRET, "sesame anew"), strict=True):
        again = ann.value("replay_request", request_id=row["request_id"])
        assert again == row["body"] and text in again


def test_a_stale_summary_is_written_anew_while_nobody_writes(ann, service, talk):
    ann.summarise(talk, 4, content=SECRET)
    ann.row("delete_message", conversation_id=talk, seq=1)
    assert stale(service) == [(4, 1)]
    ann.summarise(talk, 4, 4, content="sesame anew")
    assert stale(service) == []
    assert "sesame anew" in told(ann, talk) and SECRET not in told(ann, talk)


def test_one_that_is_not_stale_is_not_written_anew(ann, talk, fails):
    ann.summarise(talk, 4)
    with fails("22023", reason="through_seq is not after the last summary"):
        ann.summarise(talk, 4, 4)


@pytest.mark.parametrize("function", ["delete_message", "edit_message"])
def test_what_changed_while_a_worker_wrote_makes_it_stale(
    ann, service, talk, claim, function
):
    assert claim()
    more = {"content": "sesame edited"} if function == "edit_message" else {}
    ann.row(function, conversation_id=talk, seq=2, **more)
    ann.summarise(talk, 4)
    assert stale(service) == [(4, 2)]


def test_what_changed_after_it_does_not(ann, service, talk, claim):
    assert claim()
    ann.row("edit_message", conversation_id=talk, seq=5, content="sesame edited")
    ann.summarise(talk, 4)
    assert stale(service) == []


def test_what_changed_before_the_claim_does_not(ann, service, talk, claim):
    assert claim()
    ann.row("edit_message", conversation_id=talk, seq=2, content="sesame edited")
    service.conn.execute(
        "update convo.conversation set summary_leased_until = '2020-01-01'"
    )
    assert claim()
    ann.summarise(talk, 4)
    assert stale(service) == []


def test_a_batch_that_was_deleted_meanwhile_is_not_saved(ann, talk, fails):
    ann.rows("summary_batch", conversation_id=talk)
    clear(ann, talk)
    ann.say(talk, 10)
    with fails("PC010", through_seq=0):
        ann.summarise(talk, 4, content=SECRET)
    assert SECRET not in told(ann, talk)


def test_without_a_user_message_the_newest_stays(ann, service, conversation_id, fails):
    ann.say(conversation_id, 10, 10, 10, role="assistant")
    service.row("set_policy", name="default", start_on_user=False)
    (batch,) = ann.rows("summary_batch", conversation_id=conversation_id)
    assert batch["through_seq"] == 2
    with fails("22023"):
        ann.summarise(conversation_id, 3)
    ann.summarise(conversation_id, 2)
    assert ann.context(conversation_id)[-1]["seq"] == 3


def test_a_fork_of_a_stale_one_is_stale(ann, service, talk):
    ann.row("delete_message", conversation_id=talk, seq=2)
    ann.summarise(talk, 4)
    ann.row("restore_message", conversation_id=talk, seq=2)
    ann.value("fork_conversation", conversation_id=talk)
    assert stale(service) == [(4, 2), (4, 2)]
