"""The validators report what the providers refuse."""

from __future__ import annotations

import pytest

from . import (
    validate_anthropic,
    validate_gemini,
    validate_openai,
    validate_openai_responses,
)

USER = {"role": "user", "content": "hi"}
CHAT_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ],
}
CHAT_RESULT = {"role": "tool", "tool_call_id": "a", "content": "ok"}
ITEM_CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
ITEM_RESULT = {"type": "function_call_output", "call_id": "a", "output": "ok"}
USE = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
USE_RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "ok"}
TEXT = {"type": "text", "text": "hi"}
FUNCTION = {"functionCall": {"name": "f", "args": {}}}
RESPONSE = {"functionResponse": {"name": "f", "response": {"output": "ok"}}}


def anthropic(*contents, **other):
    roles = ["user", "assistant"] * len(contents)
    messages = [
        {"role": role, "content": content}
        for role, content in zip(roles, contents, strict=False)
    ]
    return {"messages": messages, **other}


def gemini(*contents):
    roles = ["user", "model"] * len(contents)
    return {
        "contents": [
            {"role": role, "parts": parts}
            for role, parts in zip(roles, contents, strict=False)
        ]
    }


@pytest.mark.parametrize(
    ("validator", "request_body"),
    [
        (validate_openai, [USER, CHAT_CALL, CHAT_RESULT, USER]),
        (validate_openai_responses, [USER, ITEM_CALL, ITEM_RESULT, USER]),
        (validate_anthropic, anthropic("hi", [TEXT, USE], [USE_RESULT, TEXT])),
        (validate_gemini, gemini([{"text": "hi"}], [FUNCTION], [RESPONSE])),
    ],
)
def test_takes_what_is_valid(validator, request_body):
    assert validator.problems(request_body) == []


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "no"),
        ([USER, CHAT_CALL, USER], "have no result"),
        ([USER, CHAT_CALL], "have no result"),
        ([USER, CHAT_RESULT], "without a call"),
        ([USER, CHAT_CALL, CHAT_RESULT, CHAT_RESULT], "without a call"),
        ([USER, CHAT_CALL, USER, CHAT_RESULT], "without a call"),
        ([USER, {"role": "system", "content": "x"}], "system message after"),
        ([{"role": "user", "content": ""}], "empty"),
        ([{"role": "assistant", "content": None}], "neither"),
        ([{"role": "model", "content": "x"}], "role model"),
        ([{"role": "user", "content": [{"type": "image"}]}], "a part image"),
    ],
)
def test_openai_reports(messages, problem):
    assert problem in " ".join(validate_openai.problems(messages))


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ([], "no"),
        ([USER, ITEM_CALL], "have no output"),
        ([USER, ITEM_RESULT], "without its call"),
        ([ITEM_CALL, ITEM_RESULT, ITEM_RESULT], "without its call"),
        ([ITEM_RESULT, ITEM_CALL], "without its call"),
        ([{"type": "reasoning", "summary": []}, USER], "reasoning without"),
        ([{"role": "user", "content": ""}], "empty"),
        ([{"role": "tool", "content": "x"}], "role tool"),
        ([{"role": "assistant", "content": [{"type": "input_text"}]}], "a part input"),
        ([{"type": "item_reference", "id": "x"}], "an item of type"),
    ],
)
def test_openai_responses_reports(items, problem):
    assert problem in " ".join(validate_openai_responses.problems(items))


@pytest.mark.parametrize(
    ("request_body", "problem"),
    [
        ({"messages": []}, "no"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "has its turn"),
        ({"messages": [USER, USER]}, "has its turn"),
        (anthropic("hi", [USE]), "have no result"),
        (anthropic("hi", [USE], "later"), "results"),
        (anthropic([USE_RESULT]), "results"),
        (anthropic("hi", [USE], [USE_RESULT, USE_RESULT]), "results"),
        (anthropic("hi", [USE], [TEXT, USE_RESULT]), "after other content"),
        (anthropic("hi", [USE], [USE_RESULT], [USE], [USE_RESULT]), "used before"),
        (anthropic("hi", [USE | {"id": "a:b"}], [USE_RESULT]), "id a:b"),
        (
            anthropic("hi", [USE | {"input": "x"}], [USE_RESULT]),
            "without name or input",
        ),
        (anthropic("\n"), "empty"),
        (anthropic("hi", "yes "), "white space"),
        (anthropic("hi", system=""), "system"),
        (anthropic([{"type": "audio"}]), "a block audio"),
    ],
)
def test_anthropic_reports(request_body, problem):
    assert problem in " ".join(validate_anthropic.problems(request_body))


@pytest.mark.parametrize(
    ("request_body", "problem"),
    [
        ({"contents": []}, "no"),
        ({"contents": [{"role": "assistant", "parts": [TEXT]}]}, "has its turn"),
        (gemini([{"text": "hi"}], [FUNCTION]), "have no result"),
        (gemini([{"text": "hi"}], [FUNCTION], [{"text": "x"}]), "results"),
        (gemini([RESPONSE]), "results"),
        (gemini([{"text": "hi"}], [FUNCTION] * 2, [RESPONSE]), "results"),
        (gemini([FUNCTION]), "a call of user"),
        (gemini([]), "no parts"),
        (gemini([{"text": ""}]), "empty"),
        (gemini([{"functionCall": {"name": "f"}, "text": "x"}]), "a part of"),
        (
            gemini([{"functionResponse": {"name": "f", "response": "x"}}]),
            "not an object",
        ),
    ],
)
def test_gemini_reports(request_body, problem):
    assert problem in " ".join(validate_gemini.problems(request_body))
