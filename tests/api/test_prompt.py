"""System prompts are stored once per user, and go with their last conversation."""

from __future__ import annotations


def prompts(db):
    return [
        tuple(row)
        for row in db.execute(
            "select tenant_id, user_id, content from convo.prompt"
            " order by tenant_id, user_id, content"
        )
    ]


def test_a_thousand_conversations_with_one_prompt_store_it_once(ann, db):
    prompt = "You are a helpful agent. " * 200
    with ann.conn.pipeline():
        for _ in range(1000):
            ann.conn.execute(
                "select convo.create_conversation(system_prompt => %s)", [prompt]
            )

    assert db.execute("select count(*) from convo.conversation").fetchone() == (1000,)
    assert prompts(db) == [("acme", "ann", prompt)]


def test_two_prompts_are_two(ann, db):
    ann.create(system_prompt="one")
    ann.create(system_prompt="One")

    assert len(prompts(db)) == 2


def test_each_user_and_tenant_has_a_copy_of_its_own(ann, ben, hostile, db):
    for caller in (ann, ben, hostile):
        caller.create(system_prompt="one")

    assert prompts(db) == [
        ("acme", "ann", "one"),
        ("acme", "ben", "one"),
        ("evil", "ann", "one"),
    ]


def test_a_prompt_goes_with_its_last_conversation(ann, db):
    first, last = ann.create(system_prompt="one"), ann.create(system_prompt="one")
    ann.value("delete_conversation", conversation_id=first)
    assert len(prompts(db)) == 1

    ann.value("delete_conversation", conversation_id=last)
    assert prompts(db) == []


def test_a_prompt_goes_when_the_last_conversation_takes_another(ann, db):
    own = ann.create(system_prompt="one")
    ann.row("update_conversation", conversation_id=own, system_prompt="two")

    assert prompts(db) == [("acme", "ann", "two")]


def test_a_prompt_goes_when_the_last_conversation_clears_it(ann, db):
    own = ann.create(system_prompt="one")
    ann.row("update_conversation", conversation_id=own, system_prompt="")

    assert prompts(db) == []


def test_a_shared_prompt_stays_when_one_takes_another(ann, db):
    own, other = ann.create(system_prompt="one"), ann.create(system_prompt="one")
    ann.row("update_conversation", conversation_id=own, system_prompt="two")

    assert ann.get(other)["system_prompt"] == "one"
    assert len(prompts(db)) == 2


def test_the_same_prompt_given_again_stays(ann, db):
    own = ann.create(system_prompt="one")
    ann.row("update_conversation", conversation_id=own, system_prompt="one")

    assert prompts(db) == [("acme", "ann", "one")]


def test_a_fork_shares_the_prompt_and_keeps_it(ann, db):
    own = ann.create(system_prompt="one")
    copy = ann.value("fork_conversation", conversation_id=own)
    assert len(prompts(db)) == 1

    ann.value("delete_conversation", conversation_id=own)
    assert ann.get(copy)["system_prompt"] == "one"


def test_the_service_deleting_the_last_collects_it_too(ann, service, db):
    own = ann.create(system_prompt="one")
    service.value("delete_conversation", conversation_id=own)

    assert prompts(db) == []


def test_a_prompt_of_1_mb_in_any_script_comes_back(ann):
    prompt = "日本語 🚀 עברית " * 40_000

    assert ann.get(ann.create(system_prompt=prompt))["system_prompt"] == prompt
