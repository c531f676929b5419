"""list_stale_summaries: what changed under a summary after it was saved."""

from __future__ import annotations

import pytest

from .test_get_context import ASSISTANT, USER, calls, result


@pytest.fixture
def summarised(ann, conversation_id):
    """Five messages, the first three under a summary."""
    ann.say(conversation_id, 1, 2, 4, 8, 16)
    ann.summarise(conversation_id, 3)
    return conversation_id


def stale(who, **options):
    return [tuple(row.values()) for row in who.rows("list_stale_summaries", **options)]


CHANGES = {
    "edit_message": {"content": "sesame"},
    "delete_message": {},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_reported_and_the_first_counts(ann, summarised, change):
    assert stale(ann) == []
    for seq, first in ((3, 3), (2, 2), (3, 2)):
        ann.row(change, conversation_id=summarised, seq=seq, **CHANGES[change])
        assert stale(ann) == [(summarised, 3, first)]


def test_a_change_after_it_or_before_it_was_saved_is_not(ann, summarised):
    ann.row("edit_message", conversation_id=summarised, seq=4, content="sesame 2")
    assert stale(ann) == []

    ann.summarise(summarised, 4, 3)
    assert stale(ann) == []


def test_a_restored_message_is_reported(ann, conversation_id):
    ann.say(conversation_id, 1, 2, 4)
    place = {"conversation_id": conversation_id, "seq": 1}
    ann.row("delete_message", **place)
    ann.summarise(conversation_id, 2)
    ann.row("delete_message", **place)  # it is deleted already
    assert stale(ann) == []

    ann.row("restore_message", **place)

    assert stale(ann) == [(conversation_id, 2, 1)]


def test_a_result_that_comes_late_is_reported(ann, conversation_id):
    ann.append(conversation_id, [calls("a"), *[USER] * 11])
    ann.summarise(conversation_id, 5)

    ann.append(conversation_id, [ASSISTANT, result("a")])

    assert stale(ann) == [(conversation_id, 5, 14)]
    assert ann.context(conversation_id)[-1]["seq"] == 13


def test_deleting_the_late_result_is_reported(ann, conversation_id):
    ann.append(conversation_id, [calls("a"), *[USER] * 3, result("a"), USER, USER])
    ann.summarise(conversation_id, 3)

    ann.value("delete_messages", conversation_id=conversation_id, from_seq=5)

    assert stale(ann) == [(conversation_id, 3, 5)]


def test_a_system_message_is_not_summarised(ann, conversation_id):
    ann.say(conversation_id, 1, role="system")
    ann.say(conversation_id, 1, 2, 4)
    ann.summarise(conversation_id, 3)
    ann.row("edit_message", conversation_id=conversation_id, seq=1, content="sesame")

    assert stale(ann) == []


def test_the_next_summary_knows(ann, summarised):
    ann.row("delete_message", conversation_id=summarised, seq=1)
    ann.summarise(summarised, 4, 3)

    assert stale(ann) == []


def test_a_summary_that_comes_into_use_again_is_as_stale_as_it_was(ann, summarised):
    ann.row("edit_message", conversation_id=summarised, seq=2, content="sesame")
    ann.summarise(summarised, 4, 3)
    assert stale(ann) == []

    ann.value("delete_messages", conversation_id=summarised, from_seq=4)

    assert stale(ann) == [(summarised, 3, 2)]


def test_a_fork_is_as_stale(ann, summarised):
    ann.row("edit_message", conversation_id=summarised, seq=2, content="sesame")
    fork = ann.value("fork_conversation", conversation_id=summarised)
    short = ann.value("fork_conversation", conversation_id=summarised, through_seq=2)

    assert sorted(stale(ann)) == sorted([(summarised, 3, 2), (fork, 3, 2)])
    assert ann.get(short)["last_seq"] == 2


def test_clearing_everything_leaves_nothing_stale(ann, summarised):
    ann.row("edit_message", conversation_id=summarised, seq=2, content="sesame")
    ann.value("delete_messages", conversation_id=summarised)

    assert stale(ann) == []


def test_app_sees_its_own_and_the_tenants_roles_see_all(
    ann, ben, service, reader, hostile_service, summarised
):
    ann.row("delete_message", conversation_id=summarised, seq=1)

    for who in (ann, service, reader):
        assert stale(who) == [(summarised, 3, 1)]
    for who in (ben, hostile_service):
        assert stale(who) == []


def test_page_size(ann, fails):
    for _ in range(3):
        made = ann.create()
        ann.say(made, 1, 2)
        ann.summarise(made, 1)
        ann.row("delete_message", conversation_id=made, seq=1)

    assert [len(stale(ann, page_size=n)) for n in (0, 2, 5)] == [0, 2, 3]
    for size in (-1, None):
        with fails("22023", argument="page_size"):
            stale(ann, page_size=size)
