"""explain_context: what get_context keeps, and why it leaves out the rest."""

from __future__ import annotations

from .test_get_context import ASSISTANT, EMPTY, USER, calls, result


def explained(caller, conversation_id, **options):
    return [
        (row["seq"], row["running_tokens"], row["reason"])
        for row in caller.rows(
            "explain_context", conversation_id=conversation_id, **options
        )
    ]


def test_each_message_has_its_reason(ann, service, conversation_id):
    messages = [
        USER, ASSISTANT, USER, USER, ASSISTANT, ASSISTANT, USER, EMPTY, calls("a"),
        result("z"), ASSISTANT,
    ]  # fmt: skip
    ann.append(conversation_id, messages, tokens=[10] * len(messages))
    ann.say(conversation_id, 5, role="system")
    ann.summarise(conversation_id, 2)
    ann.row("delete_message", conversation_id=conversation_id, seq=3)

    assert explained(ann, conversation_id, token_budget=5 + 16 + 35) == [
        (12, 5, "kept"),
        (2, 11, "kept"),
        (2, 21, "kept"),
        (1, None, "summarised"),
        (2, None, "summarised"),
        (3, None, "deleted"),
        (4, None, "over the budget"),
        (5, None, "over the budget"),
        (6, None, "before the first user message"),
        (7, 31, "kept"),
        (8, None, "empty"),
        (9, None, "call without a result"),
        (10, None, "result without a call"),
        (11, 41, "kept"),
    ]


def test_columns(ann, conversation_id):
    ann.say(conversation_id, 7)

    assert ann.rows("explain_context", conversation_id=conversation_id) == [
        {
            "seq": 1, "role": "user", "kind": "message", "tokens": 7,
            "running_tokens": 7, "is_kept": True, "reason": "kept",
        }
    ]  # fmt: skip


def test_a_pinned_message_stands_before_what_is_left_out(ann, conversation_id):
    ann.append(conversation_id, [USER, ASSISTANT, ASSISTANT], tokens=[10] * 3)

    assert explained(ann, conversation_id, token_budget=20) == [
        (1, 10, "kept"),
        (2, None, "over the budget"),
        (3, 20, "kept"),
    ]


def test_a_reader_may_call_it(ann, reader, conversation_id):
    ann.say(conversation_id, 7)

    assert explained(reader, conversation_id) == [(1, 7, "kept")]
