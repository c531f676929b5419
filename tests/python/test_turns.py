"""Client.turn: three transactions around the call of a model."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from threading import Barrier, Thread

import psycopg
import pytest
from anthropic import Anthropic
from google.genai.types import GenerateContentResponse
from openai import LengthFinishReasonError, OpenAI, RateLimitError
from openai.types.chat import ChatCompletion
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

import pgconvo
from pgconvo import Client

ANN = {"tenant_id": "acme", "user_id": "ann"}
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-x-1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Hello."},
        }
    ],
    "usage": USAGE,
}


@pytest.fixture(params=[True, False], ids=["autocommit", "no autocommit"])
def client(request, connect):
    """A login that says nothing about tenant and user."""
    return Client(connect("test_app", autocommit=request.param))


@pytest.fixture
def conversation_id(connect):
    """A conversation of ann's with one message."""
    ann = Client(connect("test_app", tenant="acme", user="ann"))
    conversation_id = ann.create_conversation()
    ann.append_message(conversation_id, "user", "Hi")
    return conversation_id


@pytest.fixture
def turn(client, conversation_id):
    """Begin a turn of ann's."""
    return lambda **options: client.turn(conversation_id, "openai", **ANN, **options)


@pytest.fixture
def stored(db, connect, conversation_id):
    """What is stored: status and error of each request, answers, input tokens."""
    reader = Client(connect("test_reader", tenant="acme"))
    errors = "select request_id, error from convo.request"
    usage = "select input_tokens from convo.usage order by created_at"

    def stored():
        requests = reversed(reader.list_requests(conversation_id))
        error_of = dict(db.execute(errors).fetchall())
        messages = reader.iter_messages(conversation_id)
        return (
            [(request.status, error_of[request.request_id]) for request in requests],
            sum(message.role == "assistant" for message in messages),
            [tokens for (tokens,) in db.execute(usage)],
        )

    return stored


def test_a_turn(turn, stored):
    with turn(model="gpt-x", parameters={"temperature": 0}) as one:
        assert one.json() == {
            "model": "gpt-x",
            "temperature": 0,
            "messages": [{"role": "user", "content": "Hi"}],
        }
        assert hashlib.sha256(one.body.encode()).digest() == one.request.body_sha256
        assert one.request_id == one.request.request_id
        (message,) = one.complete(ANSWER)

    assert (message.content, message.model) == ("Hello.", "gpt-x-1")
    assert one.status == "completed"
    assert stored() == ([("completed", None)], 1, [7])


def test_nothing_is_open_or_locked_while_the_model_answers(turn, client, connect):
    with turn() as one:
        assert client.connection.info.transaction_status is TransactionStatus.IDLE
        other = Client(connect("test_app", tenant="acme", user="ann"))
        other.connection.execute("set lock_timeout = '1s'")
        other.append_message(one.request.conversation_id, "user", "Are you there?")
        (request,) = other.list_requests(one.request.conversation_id)
        assert request.status == "prepared"
        one.complete(ANSWER)
        (request,) = other.list_requests(one.request.conversation_id)
        assert request.status == "completed"


def test_after_a_turn_nothing_stays_set(turn, client):
    with turn() as one:
        one.complete(ANSWER)
    with pytest.raises(pgconvo.ContextMissing), client.connection.transaction():
        client.list_requests(one.request.conversation_id)


def test_it_refuses_a_connection_inside_a_transaction(turn, client):
    refused = pytest.raises(pgconvo.AlreadyInTransaction, match="a turn needs")
    with client.connection.transaction(), refused:
        turn().__enter__()


def test_completing_refuses_a_transaction_too(turn, client, stored):
    with turn() as one:
        refused = pytest.raises(pgconvo.AlreadyInTransaction)
        with client.acting_as("acme", "ann"), refused:
            one.complete(ANSWER)
        one.complete(ANSWER)

    assert stored()[0] == [("completed", None)]


def test_a_login_of_one_tenant_needs_no_names(connect, conversation_id, stored):
    client = Client(connect("test_app", tenant="acme", user="ann", autocommit=False))
    with client.turn(conversation_id, "openai") as one:
        one.complete(ANSWER)

    assert stored()[0] == [("completed", None)]


def test_a_user_needs_a_tenant(client, conversation_id):
    with pytest.raises(TypeError, match="user_id needs tenant_id"):
        client.turn(conversation_id, "openai", user_id="ann").__enter__()


def test_a_service_takes_a_turn_for_the_user(connect, conversation_id, stored):
    client = Client(connect("test_service"))
    who = {"tenant_id": "acme", "role": "convo_service"}
    with client.turn(conversation_id, "openai", **who) as one:
        one.complete(ANSWER)

    assert stored()[0] == [("completed", None)]


def test_what_cant_be_prepared_leaves_nothing(turn, client, stored):
    with pytest.raises(pgconvo.BudgetExceeded):
        turn(token_budget=0).__enter__()

    assert client.connection.info.transaction_status is TransactionStatus.IDLE
    assert stored()[0] == []


# Without an answer


def test_an_exception_is_recorded_and_goes_on(turn, stored):
    with pytest.raises(ZeroDivisionError), turn():
        raise ZeroDivisionError("by \0 and \ud800")

    error = "ZeroDivisionError: by \ufffd and ?"
    assert stored() == ([("failed", error)], 0, [])


def test_leaving_without_an_answer_is_recorded(turn, stored):
    with turn():
        pass

    assert stored() == ([("failed", "the turn ended without an answer")], 0, [])


def test_an_interrupt_is_recorded(turn, stored):
    with pytest.raises(KeyboardInterrupt), turn():
        raise KeyboardInterrupt

    assert stored()[0] == [("failed", "KeyboardInterrupt: ")]


def test_an_exception_after_the_answer_changes_nothing(turn, stored):
    with pytest.raises(ZeroDivisionError), turn() as one:
        one.complete(ANSWER)
        raise ZeroDivisionError

    assert stored() == ([("completed", None)], 1, [7])


def test_tries_that_failed_cost_and_the_last_may_succeed(turn, stored):
    with turn() as one:
        one.fail("no tokens left", usage=USAGE)
        assert one.status == "failed"
        one.complete({**ANSWER, "usage": {**USAGE, "prompt_tokens": 8}})

    assert stored() == ([("completed", "no tokens left")], 1, [7, 8])


def test_an_exception_after_a_failure_is_recorded_too(turn, stored):
    with pytest.raises(ZeroDivisionError), turn() as one:
        one.fail("mine", USAGE)
        raise ZeroDivisionError

    assert stored() == ([("failed", "ZeroDivisionError: ")], 0, [7])


def test_leaving_after_a_failure_changes_nothing(turn, stored):
    with turn() as one:
        one.fail("mine")

    assert stored()[0] == [("failed", "mine")]


def test_a_response_that_cant_be_stored_costs(turn, stored):
    response = json.dumps({**ANSWER, "choices": []})
    for given in (response, response.encode(), json.loads(response)):
        with pytest.raises(pgconvo.InvalidMessage), turn() as one:
            one.complete(given)

    requests, answers, tokens = stored()
    assert {status for status, _ in requests} == {"failed"}
    assert "InvalidMessage: message not valid" in requests[0][1]
    assert (answers, tokens) == (0, [7, 7, 7])


REFUSED = {**ANSWER, "choices": [], "usage": {**USAGE, "prompt_tokens": 111}}


def test_a_refused_response_after_a_failure_costs(turn, stored):
    with pytest.raises(pgconvo.InvalidMessage), turn() as one:
        one.fail("try 1")
        one.complete(REFUSED)

    (((status, error),), answers, tokens) = stored()
    assert (status, answers, tokens) == ("failed", 0, [111])
    assert error.startswith("InvalidMessage: message not valid")


@pytest.mark.parametrize("is_failed", [False, True])
def test_a_refused_response_costs_even_if_nobody_minds(turn, stored, is_failed):
    with turn() as one:
        if is_failed:
            one.fail("try 1")
        with pytest.raises(pgconvo.InvalidMessage):
            one.complete(REFUSED)

    (((_, error),), _, tokens) = stored()
    assert tokens == [111]
    assert error.startswith("InvalidMessage: message not valid")


def test_a_refused_response_costs_beside_the_answer(turn, stored):
    with turn() as one:
        with pytest.raises(pgconvo.InvalidMessage):
            one.complete(REFUSED)
        one.complete(ANSWER)

    (((status, error),), answers, tokens) = stored()
    assert (status, answers, tokens) == ("completed", 1, [111, 7])
    assert error.startswith("InvalidMessage: message not valid")


def test_a_refused_response_in_a_better_shape_costs_once(turn, stored):
    with turn() as one:
        with pytest.raises(pgconvo.InvalidMessage, match="several answers"):
            one.complete({**ANSWER, "choices": ANSWER["choices"] * 2})
        one.complete(ANSWER)

    assert stored() == ([("completed", None)], 1, [7])


@pytest.mark.parametrize("usage", [None, REFUSED["usage"]])
def test_a_refused_response_that_the_caller_records_costs_once(turn, stored, usage):
    with pytest.raises(pgconvo.InvalidMessage), turn() as one:
        try:
            one.complete(REFUSED)
        except pgconvo.InvalidMessage:
            one.fail("no answer in it", usage)
            raise

    assert stored()[2] == [111]


def test_a_completion_that_the_caller_records_costs_once(turn, stored):
    completion = ChatCompletion.model_validate(ANSWER)
    with pytest.raises(LengthFinishReasonError), turn() as one:
        one.fail("too long", completion.usage)
        raise LengthFinishReasonError(completion=completion)

    assert stored()[2] == [7]


@pytest.mark.parametrize("name", ["usageMetadata", "usage_metadata"])
def test_the_usage_of_gemini_is_found_in_either_case(
    client, conversation_id, stored, name
):
    count = "promptTokenCount" if name == "usageMetadata" else "prompt_token_count"
    refused = pytest.raises(pgconvo.InvalidMessage)
    with refused, client.turn(conversation_id, "gemini", **ANN) as one:
        one.complete({"candidates": [], name: {count: 5}})

    assert stored()[2] == [5]


def test_an_exception_that_holds_a_completion_costs(turn, stored):
    with pytest.raises(LengthFinishReasonError), turn():
        raise LengthFinishReasonError(completion=ChatCompletion.model_validate(ANSWER))

    assert stored()[2] == [7]


def test_a_lost_connection_hides_no_exception(turn, client):
    with pytest.raises(ZeroDivisionError) as caught, turn():
        client.connection.close()
        raise ZeroDivisionError

    (note,) = caught.value.__notes__
    assert note.startswith("and it could not be recorded: ")


def test_a_lost_connection_alone_is_an_error(turn, client):
    with pytest.raises(psycopg.OperationalError), turn():
        client.connection.close()


def test_an_answer_that_somebody_else_stored_is_an_answer(turn, connect, stored):
    other = Client(connect("test_app", tenant="acme", user="ann"))
    with turn() as one:
        other.complete_request(one.request_id, ANSWER)
    with pytest.raises(ZeroDivisionError) as caught, turn() as one:
        other.complete_request(one.request_id, ANSWER)
        raise ZeroDivisionError

    assert not hasattr(caught.value, "__notes__")
    assert stored() == ([("completed", None)] * 2, 2, [7, 7])


# Twice, and after a crash


def test_completing_twice_stores_once(turn, stored):
    with turn() as one:
        assert one.complete(ANSWER) == one.complete(ANSWER)

    assert stored() == ([("completed", None)], 1, [7])


def test_another_answer_is_refused_and_the_first_stays(turn, stored):
    with pytest.raises(pgconvo.IdempotencyMismatch), turn() as one:
        one.complete(ANSWER)
        one.complete({**ANSWER, "model": "another"})

    assert stored() == ([("completed", None)], 1, [7])


def test_expected_seq(turn, connect, stored):
    other = Client(connect("test_app", tenant="acme", user="ann"))
    with turn() as one:
        other.append_message(one.request.conversation_id, "user", "Wait!")
        with pytest.raises(pgconvo.Conflict):
            one.complete(ANSWER, expected_seq=one.request.last_seq)
        one.complete(ANSWER)

    assert stored() == ([("completed", None)], 1, [7])


def test_two_workers_with_the_same_request_store_one_answer(
    conversation_id, connect, stored
):
    clients = [Client(connect("test_app")) for _ in range(4)]
    with clients[0].turn(conversation_id, "openai", **ANN) as one:
        barrier, stored_by = Barrier(4), []

        def work(client, answer):
            with client.acting_as("acme", "ann"):
                barrier.wait()
                try:
                    stored_by.append(client.complete_request(one.request_id, answer))
                except pgconvo.IdempotencyMismatch:
                    stored_by.append(None)

        answers = [ANSWER, ANSWER, {**ANSWER, "id": "y"}, {**ANSWER, "id": "y"}]
        threads = [
            Thread(target=work, args=pair)
            for pair in zip(clients, answers, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert stored_by.count(None) == 2
    assert stored() == ([("completed", None)], 1, [7])


DIES = """
import os, signal, sys
import psycopg
from pgconvo import Client

client = Client(psycopg.connect(sys.argv[1]))
with client.turn(sys.argv[2], "openai", tenant_id="acme", user_id="ann") as turn:
    print(turn.request_id, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_dies_leaves_a_prepared_request_to_go_on_from(
    dsn, client, conversation_id, stored
):
    command = [sys.executable, "-c", DIES, make_conninfo(dsn, user="test_app")]
    done = subprocess.run(
        [*command, str(conversation_id)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert stored() == ([("prepared", None)], 0, [])

    with client.turn(conversation_id, "openai", **ANN) as one:
        one.complete(ANSWER)
    with client.acting_as("acme", "ann"):
        client.complete_request(done.stdout.strip(), {**ANSWER, "id": "late"})
    assert stored() == ([("completed", None)] * 2, 2, [7, 7])


# With the real SDKs


@pytest.mark.parametrize("format", ["openai", "openai_responses", "anthropic"])
def test_a_response_of_an_sdk_is_stored(client, conversation_id, stand_in, format):
    openai = OpenAI(base_url=f"{stand_in.url}/v1", api_key="-")
    anthropic = Anthropic(base_url=stand_in.url, api_key="-")
    create = {
        "openai": openai.chat.completions.create,
        "openai_responses": openai.responses.create,
        "anthropic": anthropic.messages.create,
    }[format]
    parameters = {"max_tokens": 100} if format == "anthropic" else {}
    options = {"parameters": parameters, **ANN}
    with client.turn(conversation_id, format, "a-model", **options) as one:
        (message,) = one.complete(create(**one.json()))

    assert message.content.startswith("In Paris")
    assert message.model == "a-model"


def test_a_response_of_geminis_sdk_is_stored(client, conversation_id):
    response = GenerateContentResponse.model_validate(
        {
            "candidates": [
                {
                    "content": {
                        "parts": [{"text": "Hello.", "thoughtSignature": "AA=="}],
                        "role": "model",
                    },
                    "finishReason": "STOP",
                }
            ],
            "modelVersion": "gemini-x-1",
        }
    )
    with client.turn(conversation_id, "gemini", **ANN) as one:
        (message,) = one.complete(response)

    assert (message.content, message.model) == ("Hello.", "gemini-x-1")
    assert message.metadata == {"finish_reason": "STOP"}
    assert json.loads(message.payload)["parts"][0]["thoughtSignature"] == "AA=="


def test_the_items_of_a_response_are_enough(client, conversation_id, stand_in):
    openai = OpenAI(base_url=f"{stand_in.url}/v1", api_key="-")
    with client.turn(conversation_id, "openai_responses", "a-model", **ANN) as one:
        (message,) = one.complete(openai.responses.create(**one.json()).output)

    assert json.loads(message.payload)["id"] == "msg_1"


def test_what_an_sdk_parsed_is_not_stored(turn, stand_in):
    openai = OpenAI(base_url=f"{stand_in.url}/v1", api_key="-")
    with (
        turn(model="a-model") as one,
        openai.chat.completions.stream(**one.json()) as stream,
    ):
        (message,) = one.complete(stream.get_final_completion())

    assert message.content.startswith("In Paris")
    assert "parsed" not in message.payload


def test_a_provider_that_refuses_is_recorded(turn, stand_in, stored):
    stand_in.refusals = 1
    openai = OpenAI(base_url=f"{stand_in.url}/v1", api_key="-", max_retries=0)
    with pytest.raises(RateLimitError), turn(model="a-model") as one:
        openai.chat.completions.create(**one.json())

    ((status, error),) = stored()[0]
    assert status == "failed"
    assert error.startswith("RateLimitError: Error code: 429")
