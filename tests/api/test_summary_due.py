"""summary_due: live tokens since the last summary against the policy's threshold."""

from __future__ import annotations

from uuid import uuid4

import pytest


def due(who, conversation_id):
    return who.value("summary_due", conversation_id=conversation_id)


@pytest.mark.parametrize(
    ("threshold", "share", "limit"),
    [(100, 0.8, 80), (10, 0.7, 7), (7, 0.5, 3), (1, 1, 1), (100, 0.001, 0)],
)
def test_it_is_over_share_of_threshold(
    ann, service, conversation_id, threshold, share, limit
):
    service.row(
        "set_policy",
        name="default",
        summary_threshold=threshold,
        summary_share=str(share),
    )
    ann.say(conversation_id, limit)
    assert due(ann, conversation_id) is False

    ann.say(conversation_id, 1)
    assert due(ann, conversation_id) is True


def test_without_a_policy_it_is_over_16000(ann, conversation_id):
    ann.say(conversation_id, 16000)
    assert due(ann, conversation_id) is False
    ann.say(conversation_id, 1)
    assert due(ann, conversation_id) is True


def test_the_conversations_own_policy_counts(ann, service):
    service.row("set_policy", name="default", summary_threshold=10)
    service.row("set_policy", name="long", summary_threshold=1000)
    conversation_id = ann.create(policy="long")
    ann.say(conversation_id, 500)

    assert due(ann, conversation_id) is False
    service.value("delete_policy", name="long")
    assert due(ann, conversation_id) is True


def test_system_messages_deleted_ones_and_summarised_ones_do_not_count(
    ann, service, conversation_id
):
    service.row("set_policy", name="default", summary_threshold=10, summary_share=1)
    ann.say(conversation_id, 100, role="system")
    ann.say(conversation_id, 6, 6, 3)
    assert due(ann, conversation_id) is True

    ann.row("delete_message", conversation_id=conversation_id, seq=2)
    assert due(ann, conversation_id) is False
    ann.row("restore_message", conversation_id=conversation_id, seq=2)
    ann.summarise(conversation_id, 2)
    assert due(ann, conversation_id) is False


def test_a_reader_may_ask(reader, conversation_id):
    assert due(reader, conversation_id) is False


def test_of_others_it_is_not_found(outsider, conversation_id, fails):
    for missing in (conversation_id, uuid4()):
        with fails("PC001", conversation_id=missing):
            due(outsider, missing)


def test_a_deleted_conversation_says_so(ann, conversation_id, fails):
    ann.value("delete_conversation", conversation_id=conversation_id)
    with fails("PC012"):
        due(ann, conversation_id)
