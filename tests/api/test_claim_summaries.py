"""claim_summaries: what is due in the tenant, to one worker at a time."""

from __future__ import annotations

import psycopg
import pytest

GREATEST = 2**63 - 1


@pytest.fixture(autouse=True)
def policy(service):
    """A summary is due over 100 tokens."""
    service.row("set_policy", name="default", summary_threshold=100, summary_share=1)


def talk(who, *tokens, **options):
    conversation_id = who.create(**options)
    who.say(conversation_id, *tokens)
    return conversation_id


def claim(service, **options):
    rows = service.rows("claim_summaries", **options)
    return {row["conversation_id"] for row in rows}


def marks(db):
    return [
        mark
        for (mark,) in db.execute(
            "select summary_due_over from convo.conversation order by conversation_id"
        )
    ]


def test_gives_what_is_due_of_all_users(ann, ben, hostile, service):
    first, second = talk(ann, 60, 60), talk(ben, 101)
    talk(ann, 60, 40)
    talk(hostile, 1000)

    rows = service.rows("claim_summaries")

    assert sorted(rows, key=lambda row: row["user_id"]) == [
        {"conversation_id": first, "user_id": "ann", "body_tokens": 120},
        {"conversation_id": second, "user_id": "ben", "body_tokens": 101},
    ]


def test_what_is_leased_is_given_once(ann, service):
    conversations = {talk(ann, 101), talk(ann, 101)}

    first = claim(service, page_size=1)
    second = claim(service)

    assert len(first) == 1
    assert first | second == conversations
    assert not first & second
    assert claim(service) == set()


def test_a_lease_that_ran_out_is_given_anew(ann, service):
    conversation_id = talk(ann, 101)

    assert claim(service, lease="1 ms") == {conversation_id}
    service.conn.execute("select pg_sleep(0.005)")
    assert claim(service) == {conversation_id}


def test_a_summary_ends_the_lease(ann, service):
    conversation_id = talk(ann, 60, 60, 60, 60)
    assert claim(service) == {conversation_id}

    service.summarise(conversation_id, 1)
    assert claim(service) == {conversation_id}
    service.summarise(conversation_id, 3, 1)
    assert claim(service) == set()
    ann.say(conversation_id, 60)
    assert claim(service) == {conversation_id}


def test_a_summary_that_fails_leaves_the_lease(ann, service, fails):
    conversation_id = talk(ann, 60, 60)
    claim(service)

    with fails("22023"):
        service.summarise(conversation_id, 2)
    assert claim(service) == set()


def test_it_comes_when_it_grew(ann, service, db):
    """Once looked at, it isn't looked at again before it may be due."""
    conversation_id = talk(ann, 60)
    assert claim(service) == set()
    assert marks(db) == [100]
    ann.say(conversation_id, 40)
    assert marks(db) == [100]

    ann.say(conversation_id, 1)

    assert marks(db) == [GREATEST]
    assert claim(service) == {conversation_id}


@pytest.mark.parametrize("change", ["edit_message", "restore_message"])
def test_it_comes_when_it_grew_by_other_ways(ann, service, change):
    conversation_id = talk(ann, 60, 60)
    place = {"conversation_id": conversation_id, "seq": 1}
    if change == "edit_message":
        ann.row("edit_message", **place, content="sesame", tokens=1)
    else:
        ann.row("delete_message", **place)
    assert claim(service) == set()

    options = {"content": "sesame", "tokens": 41} if change == "edit_message" else {}
    ann.row(change, **place, **options)

    assert claim(service) == {conversation_id}


def test_it_comes_when_a_summary_goes_out_of_use(ann, service):
    conversation_id = talk(ann, 101, 60, 60)
    ann.summarise(conversation_id, 2)
    assert claim(service) == set()
    ann.value("delete_messages", conversation_id=conversation_id, from_seq=2)

    assert claim(service) == {conversation_id}


def test_a_fork_comes_too(ann, service):
    conversation_id = talk(ann, 101)
    claim(service)
    fork = ann.value("fork_conversation", conversation_id=conversation_id)

    assert claim(service) == {fork}


def test_a_policy_that_was_lowered_counts_at_once(ann, service):
    conversation_id = talk(ann, 60)
    assert claim(service) == set()

    service.row("set_policy", name="default", summary_threshold=50)

    assert claim(service) == {conversation_id}


def test_a_policy_that_was_raised_counts_at_once(ann, service, db):
    conversation_id = talk(ann, 60)
    claim(service)
    service.row("set_policy", name="default", summary_threshold=200, summary_share=1)
    ann.say(conversation_id, 60)

    assert claim(service) == set()
    assert marks(db) == [200]


def test_each_conversations_policy_counts(ann, service):
    for name, threshold in (("a", 10), ("b", 1000)):
        service.row(
            "set_policy", name=name, summary_threshold=threshold, summary_share=1
        )
    expected = {
        talk(ann, 11, policy="a"),
        talk(ann, 101, policy="gone"),
        talk(ann, 101),
    }
    talk(ann, 101, policy="b")

    assert claim(service, page_size=2) < expected
    assert len(claim(service)) == 1


def test_a_conversation_that_changed_its_policy(ann, service):
    service.row("set_policy", name="a", summary_threshold=10)
    conversation_id = talk(ann, 60)
    assert claim(service) == set()
    ann.row("update_conversation", conversation_id=conversation_id, policy="a")

    assert claim(service) == {conversation_id}


def test_page_size(ann, service):
    for _ in range(3):
        talk(ann, 101)

    assert [len(claim(service, page_size=n)) for n in (0, 2, 1001)] == [0, 2, 1]


@pytest.mark.parametrize(
    "options",
    [
        {"page_size": None},
        {"page_size": -1},
        {"lease": None},
        {"lease": "0"},
        {"lease": "-1 min"},
        {"lease": "2 days"},
    ],
)
def test_sizes_that_make_no_sense(service, options, fails):
    with fails("22023", argument=next(iter(options))):
        claim(service, **options)


@pytest.mark.parametrize("who", ["ann", "reader"])
def test_only_a_service_may(request, who):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        claim(request.getfixturevalue(who))


def test_another_tenants_service_gets_nothing(ann, hostile_service):
    talk(ann, 101)
    assert claim(hostile_service) == set()


def test_claiming_is_no_activity(ann, service):
    conversation_id = talk(ann, 101)
    before = ann.get(conversation_id)
    claim(service)
    assert ann.get(conversation_id) == before
