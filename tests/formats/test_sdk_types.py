"""What is rendered parses into the types of the providers' own SDKs."""

from __future__ import annotations

import pytest

from .providers import FORMATS, assistant, results, user

CALLS = [("a", "f", '{"x": 1}'), ("b", "g", "[2]")]
ANSWERS = [("a", "f", "one", False), ("b", "g", "two", True)]


def check_openai(request):
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    types = pytest.importorskip("openai.types.chat", reason="openai is not installed")
    adapter = pydantic.TypeAdapter(list[types.ChatCompletionMessageParam])
    adapter.validate_python(request)


def check_openai_responses(request):
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    types = pytest.importorskip(
        "openai.types.responses", reason="openai is not installed"
    )
    adapter = pydantic.TypeAdapter(list[types.ResponseInputItemParam])
    adapter.validate_python(request)


def check_anthropic(request):
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    types = pytest.importorskip("anthropic.types", reason="anthropic is not installed")
    adapter = pydantic.TypeAdapter(list[types.MessageParam])
    adapter.validate_python(request["messages"])
    system = pydantic.TypeAdapter(str | list[types.TextBlockParam])
    system.validate_python(request["system"])


def check_gemini(request):
    types = pytest.importorskip(
        "google.genai.types", reason="google-genai is not installed"
    )
    for content in [request["systemInstruction"], *request["contents"]]:
        types.Content.model_validate(content)


CHECKS = {
    "openai": check_openai,
    "openai_responses": check_openai_responses,
    "anthropic": check_anthropic,
    "gemini": check_gemini,
}


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_the_sdk_knows_its_types(chat, source, target):
    chat.say("system", "Be brief.")
    chat.append(source, user(source, "see", True))
    chat.append(source, *assistant(source, "I will.", CALLS))
    chat.append(source, *results(source, ANSWERS))
    chat.append(source, *assistant(source, "Done.", []))
    chat.append(source, user(source, "thanks"))
    CHECKS[target](chat.render(target))


@pytest.mark.parametrize("target", FORMATS)
def test_the_sdk_knows_files_audio_and_custom_tools(chat, target):
    chat.say("system", "Be brief.")
    inline = [("application/pdf", "JVBERi0="), ("audio/wav", "UklGRg==")]
    chat.append(
        "gemini",
        {
            "role": "user",
            "parts": [
                {"inlineData": {"mimeType": kind, "data": data}}
                for kind, data in inline
            ],
        },
    )
    chat.append(
        "openai_responses",
        {"type": "custom_tool_call", "call_id": "c", "name": "run", "input": "ls"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c",
            "output": [
                {"type": "input_text", "text": "files"},
                {"type": "input_image", "image_url": "https://x.org/a.png"},
            ],
        },
    )
    CHECKS[target](chat.render(target))


@pytest.mark.parametrize("format", FORMATS)
def test_the_types_refuse_what_is_wrong(format):
    wrong = [{"role": 1, "content": 2, "parts": 3}]
    request = {
        "anthropic": {"messages": wrong, "system": "x"},
        "gemini": {"contents": wrong, "systemInstruction": {"parts": []}},
    }.get(format, wrong)
    with pytest.raises(ValueError):
        CHECKS[format](request)
