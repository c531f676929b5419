"""examples/turn.py runs, and the stand-in is what the SDKs take for a provider."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import anthropic
import openai
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/turn.py"
ANSWER = "In Paris it is 21 degrees and sunny, so leave the umbrella at home."
OUTPUT = f"""\
openai: calls a tool
openai: {ANSWER}
anthropic: {ANSWER}
openai responses broke off: APIConnectionError
kept: 'In Paris it is 21 ' {{"is_truncated": true, "finish_reason": "incomplete"}}
openai           completed sha256 ... received 2 times
openai           completed sha256 ... received 1 time
anthropic        completed sha256 ... received 1 time
openai_responses completed sha256 ... received 1 time
"""


def test_the_example_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert re.sub(r"[0-9a-f]{12}\.\.\.", "...", done.stdout) == OUTPUT


QUESTION = [{"role": "user", "content": "How is the weather?"}]


@pytest.fixture
def chat(stand_in):
    """OpenAI's SDK, which doesn't try again."""
    return openai.OpenAI(base_url=f"{stand_in.url}/v1", api_key="-", max_retries=0)


@pytest.fixture
def claude(stand_in):
    """Anthropic's SDK, which doesn't try again."""
    return anthropic.Anthropic(base_url=stand_in.url, api_key="-", max_retries=0)


def test_the_sdks_own_helpers_put_the_streams_together(chat, claude):
    chat_ = {"model": "m", "messages": QUESTION}
    with chat.chat.completions.stream(**chat_) as stream:
        assert stream.get_final_completion().choices[0].message.content == ANSWER
    with chat.responses.stream(model="m", input=QUESTION) as stream:
        assert stream.get_final_response().output_text == ANSWER
    with claude.messages.stream(**chat_, max_tokens=100) as stream:
        assert stream.get_final_text() == ANSWER


def test_a_limit_cuts_the_answer_off(chat, claude):
    completion = chat.chat.completions.create(
        model="m", messages=QUESTION, max_completion_tokens=3
    )
    assert completion.choices[0].finish_reason == "length"
    response = chat.responses.create(model="m", input=QUESTION, max_output_tokens=3)
    assert response.incomplete_details.reason == "max_output_tokens"
    message = claude.messages.create(model="m", messages=QUESTION, max_tokens=3)
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 3


def test_refusals_are_the_errors_of_the_sdks(chat, claude, stand_in):
    stand_in.refusals = 2
    with pytest.raises(openai.RateLimitError):
        chat.responses.create(model="m", input=QUESTION)
    with pytest.raises(anthropic.RateLimitError):
        claude.messages.create(model="m", messages=QUESTION, max_tokens=3)
    with pytest.raises(openai.NotFoundError):
        chat.embeddings.create(model="m", input="x")


def test_a_line_that_breaks_is_an_error_of_the_sdks(chat, claude, stand_in):
    stand_in.breaks_after = 4
    with pytest.raises(openai.APIConnectionError):
        list(chat.responses.create(model="m", input=QUESTION, stream=True))
    # Anthropic's lets the error of its HTTP client through.
    with pytest.raises(Exception, match="peer closed connection"):
        options = {"max_tokens": 9, "stream": True}
        list(claude.messages.create(model="m", messages=QUESTION, **options))
