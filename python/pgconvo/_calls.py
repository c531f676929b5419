"""The calls as data: for each public function its SQL, its parameters and its rows.

A function below is only a signature. Its decorator says what comes back and makes a
`Call` of it; the clients turn each `Call` into a method. Names, order and defaults of
the parameters are those of the SQL function; a test compares them with the catalog.
Any call may also raise `ContextMissing`, `NotAllowed`, `InvalidText` for a text that
PostgreSQL can't hold, and psycopg's errors: `CheckViolation` for what is too long.
"""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, TypeVar
from uuid import UUID

from ._models import Model, plain
from .errors import InvalidJson, InvalidText
from .records import (
    ClaimedMessage,
    ClaimedSummary,
    ContextItem,
    Conversation,
    ExplainedItem,
    FoundMessage,
    Memory,
    Message,
    Policy,
    PurgeResult,
    Request,
    RetentionPolicy,
    StaleSummary,
    Summary,
    SummaryBatch,
    WindowMessage,
)

P = ParamSpec("P")
R = TypeVar("R")

Row = tuple[Any, ...]
Id = UUID | str
Metadata = Mapping[str, object]
Messages = str | bytes | Mapping[str, object] | Sequence[Mapping[str, object]]
JsonObject = str | bytes | Mapping[str, object] | Model
Response = JsonObject | Sequence[object]
Facts = str | bytes | Sequence[Mapping[str, object]]

NO_METADATA: Metadata = MappingProxyType({})

_SQL_TYPES: dict[object, str] = {
    str | None: "text",
    int | None: "int",
    float | None: "real",
    bool | None: "boolean",
    Id | None: "uuid",
    datetime | None: "timestamptz",
    timedelta | None: "interval",
    Sequence[int] | None: "int[]",
    Sequence[float] | None: "real[]",
    Metadata | None: "jsonb",
    Messages | None: "json",
    JsonObject | None: "json",
    Response | None: "json",
    Facts | None: "json",
}


class Call(Generic[P, R]):
    """A public function: its SQL, how its arguments are sent and its rows are read.

    Each argument is cast in the SQL, so the driver's choice of types never matters.
    """

    def __init__(
        self, function: Callable[P, R], template: str, read: Callable[[list[Row]], R]
    ) -> None:
        self.name = function.__name__
        self.doc = function.__doc__
        self.signature = inspect.signature(function, eval_str=True)
        self.sql_types = {
            name: _SQL_TYPES[parameter.annotation | None]
            for name, parameter in self.signature.parameters.items()
        }
        arguments = (f"{name} => %({name})s::{t}" for name, t in self.sql_types.items())
        self.sql = template.format(f"convo.{self.name}({', '.join(arguments)})")
        self.returns_rows = template.startswith("select")
        self.read = read

    def parameters(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, object]:
        """The values to send with the SQL, by name; defaults filled in."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return {
            name: _to_send(name, self.sql_types[name], value)
            for name, value in bound.arguments.items()
        }


def _to_send(name: str, sql_type: str, value: Any) -> object:
    """The value of an argument as the driver should get it."""
    if value is None:
        return None
    if sql_type == "int[]":
        return list(value)
    if sql_type == "real[]":
        return [float(part) for part in value]
    if sql_type == "jsonb":
        return _json_text(name, dict(value))
    if sql_type == "json" and not isinstance(value, str | bytes):
        return _json_text(name, value)
    if isinstance(value, str | bytes):
        return _storable_text(name, value)
    return value


def _json_text(name: str, value: object) -> str:
    # ASCII: escaped, U+0000 and lone surrogates reach the server.
    try:
        return json.dumps(value, default=plain, ensure_ascii=True, allow_nan=False)
    except ValueError as error:
        raise InvalidJson(f"{name} can't be written as JSON: {error}") from error


def _storable_text(name: str, value: str | bytes) -> str:
    try:
        text = value.decode() if isinstance(value, bytes) else value
        text.encode()
        is_storable = "\0" not in text
    except UnicodeError:
        is_storable = False
    if not is_storable:
        raise InvalidText(
            f"{name} holds U+0000 or a lone surrogate, which PostgreSQL can't store",
            hint="append_messages keeps such text in its payload"
            " when given Python objects or escaped JSON."
            if name in ("content", "messages")
            else None,
        )
    return text


def _columns(record: type[R]) -> str:
    # By name, so a column that a later version adds changes nothing here. What is text
    # here may be JSON there; cast, so the driver's loader touches no byte of it.
    return ", ".join(
        f"{field.name}::text" if str(field.type).startswith("str") else field.name
        for field in fields(record)  # type: ignore[arg-type]
    )


def _row(record: type[R]) -> Callable[[Callable[P, R]], Call[P, R]]:
    """The function returns exactly one row."""

    def call(function: Callable[P, R]) -> Call[P, R]:
        template = f"select {_columns(record)} from {{}}"
        return Call(function, template, lambda rows: record(*rows[0]))

    return call


def _row_or_none(
    record: type[R],
) -> Callable[[Callable[P, R | None]], Call[P, R | None]]:
    """The function returns one row or none."""

    def call(function: Callable[P, R | None]) -> Call[P, R | None]:
        template = f"select {_columns(record)} from {{}}"
        return Call(function, template, lambda rows: record(*rows[0]) if rows else None)

    return call


def _rows(record: type[R]) -> Callable[[Callable[P, list[R]]], Call[P, list[R]]]:
    """The function returns any number of rows."""

    def call(function: Callable[P, list[R]]) -> Call[P, list[R]]:
        template = f"select {_columns(record)} from {{}}"
        return Call(function, template, lambda rows: [record(*row) for row in rows])

    return call


def _value(function: Callable[P, R]) -> Call[P, R]:
    """The function returns one value."""

    def first(rows: list[Row]) -> R:
        value: R = rows[0][0]
        return value

    return Call(function, "select {}", first)


def _text(function: Callable[P, str]) -> Call[P, str]:
    """The function returns JSON; it comes as text, untouched by the driver."""
    return Call(function, "select {}::text", lambda rows: str(rows[0][0]))


def _nothing(function: Callable[P, None]) -> Call[P, None]:
    """The function returns void."""
    return Call(function, "select {}", lambda rows: None)


def _procedure(function: Callable[P, None]) -> Call[P, None]:
    """It is a procedure, so it returns nothing and may commit."""
    return Call(function, "call {}", lambda rows: None)


# Identity


@_nothing
def set_context(tenant_id: str, user_id: str | None = None) -> None:
    """Say who is asking, for the current transaction only.

    `acting_as` does it for a block. In autocommit it would end with the call itself.
    tenant_id, user_id: 1 to 255 characters; a user of None is no user.
    Errors: InvalidArgument.
    """


@_nothing
def set_context_token(token: str) -> None:
    """Say who is asking by a signed token, until the end of this transaction.

    token: from `pgconvo.sign_context`, or another signer of the same format.
    Errors: InvalidToken.
    """


@_value
def current_tenant_id() -> str | None:
    """The tenant that is asking, or None."""


@_value
def current_user_id() -> str | None:
    """The user that is asking, or None."""


@_value
def version() -> str:
    """The version of the schema that is installed, such as `'0.1.0'`."""


# Conversations


@_value
def create_conversation(
    title: str | None = None,
    system_prompt: str | None = None,
    metadata: Metadata = NO_METADATA,
    conversation_id: Id | None = None,
    retention_class: str = "standard",
    policy: str | None = None,
    user_id: str | None = None,
) -> UUID:
    """Create a conversation and return its id, a UUID of version 7 (RFC 9562).

    conversation_id: your own id makes the call idempotent: a retry gets it back.
    retention_class: the name of a retention policy; it says when to purge.
    policy: the name of a context policy; None is the tenant's default.
    user_id: the owner; only a service names it, and must.
    Errors: IdTaken, ConversationDeleted, InvalidArgument, InvalidJson.
    """


@_row_or_none(Conversation)
def get_conversation(conversation_id: Id) -> Conversation | None:
    """The conversation, or None if there is none or it isn't the caller's."""


@_rows(Conversation)
def list_conversations(
    before_at: datetime | None = None,
    before_id: Id | None = None,
    include_archived: bool = False,
    page_size: int = 30,
) -> list[Conversation]:
    """One page of conversations, newest activity first.

    Keyset paging, as in https://use-the-index-luke.com/no-offset: the next page is
    before `updated_at` and `conversation_id` of the last row of this one.
    page_size: 0 to 1,000 rows; more is 1,000.
    Errors: InvalidArgument.
    """


@_row(Conversation)
def update_conversation(
    conversation_id: Id,
    title: str | None = None,
    system_prompt: str | None = None,
    metadata: Metadata | None = None,
    policy: str | None = None,
    retention_class: str | None = None,
) -> Conversation:
    """Change what is given: None keeps the old value and `''` clears it.

    Errors: ConversationNotFound, ConversationDeleted, InvalidArgument, InvalidJson.
    """


@_row(Conversation)
def archive_conversation(conversation_id: Id) -> Conversation:
    """Take the conversation out of the usual lists.

    Errors: ConversationNotFound, ConversationDeleted.
    """


@_row(Conversation)
def unarchive_conversation(conversation_id: Id) -> Conversation:
    """Put an archived conversation back into the lists.

    Errors: ConversationNotFound, ConversationDeleted.
    """


@_value
def delete_conversation(conversation_id: Id) -> bool:
    """Delete the conversation and all that belongs to it, for good.

    Returns False when there was none. The id stays taken.
    Errors: OnHold.
    """


@_value
def fork_conversation(
    conversation_id: Id, through_seq: int | None = None, title: str | None = None
) -> UUID:
    """Copy the conversation up to a message and return the id of the copy.

    through_seq: the last seq to copy; None copies all, 0 none.
    Errors: ConversationNotFound, ConversationDeleted, MessageNotFound.
    """


@_row(Conversation)
def transfer_conversation(conversation_id: Id, to_user_id: str) -> Conversation:
    """Give the conversation to another user of the tenant; for a service.

    Errors: ConversationNotFound, ConversationDeleted, InvalidArgument.
    """


# Messages


@_row(Message)
def append_message(
    conversation_id: Id,
    role: str,
    content: str,
    tokens: int | None = None,
    model: str | None = None,
    expected_seq: int | None = None,
    idempotency_key: str | None = None,
    metadata: Metadata = NO_METADATA,
) -> Message:
    """Append a plain text message and return it as stored.

    role: `system`, `user` or `assistant`; a tool's result goes to `append_messages`.
    tokens: its size in tokens; None lets the database estimate it.
    expected_seq: the last seq the writer saw (0: none). If there is a newer one it is a
        Conflict: optimistic locking, as with If-Match in HTTP (RFC 9110).
    idempotency_key: the same key with the same content returns what is stored, so a
        retry stores nothing twice, as with the Idempotency-Key header of the IETF.
    Errors: ConversationNotFound, ConversationDeleted, Conflict, IdempotencyMismatch,
        InvalidArgument, InvalidJson.
    """


@_rows(Message)
def append_messages(
    conversation_id: Id,
    messages: Messages,
    format: str = "openai",
    tokens: Sequence[int] | None = None,
    model: str | None = None,
    expected_seq: int | None = None,
    idempotency_key: str | None = None,
) -> list[Message]:
    """Append one message or a list in a provider's own shape, all or none of them.

    messages: JSON as str or UTF-8 bytes is sent as it is, and stays the payload byte
        for byte. Python objects are written as JSON in ASCII, so that U+0000 and lone
        surrogates survive; NaN and infinity are refused. `[]` stores nothing.
    format: the provider's format, such as `openai`.
    tokens: the sizes in tokens, one for each message; None lets the database estimate.
    expected_seq, idempotency_key: as for `append_message`.
    Errors: InvalidMessage, InvalidJson, ConversationNotFound, ConversationDeleted,
        Conflict, IdempotencyMismatch, InvalidArgument; psycopg's
        InvalidTextRepresentation for text that isn't JSON.
    """


@_rows(Message)
def last_messages(conversation_id: Id, message_limit: int) -> list[Message]:
    """The newest live messages, oldest of them first.

    message_limit: 0 to 10,000 messages; more is 10,000.
    Errors: InvalidArgument.
    """


@_rows(Message)
def list_messages(
    conversation_id: Id,
    before_seq: int | None = None,
    after_seq: int | None = None,
    page_size: int = 30,
) -> list[Message]:
    """One page of live messages, oldest first.

    It is the page after `after_seq`, else the one before `before_seq`, else the newest.
    page_size: 0 to 1,000 messages; more is 1,000.
    Errors: InvalidArgument.
    """


@_row(Message)
def edit_message(
    conversation_id: Id,
    seq: int,
    content: str,
    tokens: int | None = None,
    expected_revision: int | None = None,
) -> Message:
    """Replace the text of a message; the old version stays as a revision.

    tokens: the new size in tokens; None lets the database estimate it.
    expected_revision: the revision the editor saw; another one now is a Conflict.
    Errors: ConversationNotFound, ConversationDeleted, MessageNotFound, Conflict,
        InvalidArgument (also for a message without text).
    """


@_row(Message)
def delete_message(conversation_id: Id, seq: int) -> Message:
    """Hide a message from lists, windows and context; it can be restored.

    Errors: ConversationNotFound, ConversationDeleted, MessageNotFound.
    """


@_row(Message)
def restore_message(conversation_id: Id, seq: int) -> Message:
    """Bring back a message that `delete_message` or `delete_messages` hid.

    Errors: ConversationNotFound, ConversationDeleted, MessageNotFound.
    """


@_value
def delete_messages(conversation_id: Id, from_seq: int = 1) -> int:
    """Hide all messages from a seq to the end, and return how many that were.

    Errors: ConversationNotFound, ConversationDeleted, InvalidArgument.
    """


@_rows(Message)
def message_revisions(conversation_id: Id, seq: int) -> list[Message]:
    """All versions of a message, oldest first, the current one last.

    `created_at` is when the version was written.
    """


@_value
def estimate_tokens(content: str) -> int:
    """The database's estimate of the size of a text, in tokens. Needs no context."""


# Windows


@_rows(WindowMessage)
def token_window(conversation_id: Id, token_budget: int) -> list[WindowMessage]:
    """The newest messages that fit the budget, oldest first; no system messages.

    A tool call and its results are kept or dropped together. The window is a running
    sum from the newest message back (SQL:2003 window functions, RANGE frame).
    token_budget: tokens.
    Errors: InvalidArgument.
    """


@_rows(ContextItem)
def get_context(
    conversation_id: Id, policy: str | None = None, token_budget: int | None = None
) -> list[ContextItem]:
    """What should be sent to a model, in order, by the rule that the policy declares.

    Never empty: system prompt, system messages and summary come first, then the newest
    messages that fit, calls and results whole, and always the newest one.
    policy: a name; None is the conversation's, else the tenant's default, else the
        built-in one.
    token_budget: tokens, instead of the policy's.
    Errors: BudgetExceeded (also when there is no user message), InvalidArgument,
        ConversationNotFound, ConversationDeleted.
    """


@_rows(ExplainedItem)
def explain_context(
    conversation_id: Id, policy: str | None = None, token_budget: int | None = None
) -> list[ExplainedItem]:
    """Every message and what is added to them: what is kept, and why the rest isn't.

    It reads the whole conversation. policy, token_budget: as for `get_context`.
    Errors: those of `get_context`.
    """


@_text
def render_context(
    conversation_id: Id,
    format: str,
    policy: str | None = None,
    token_budget: int | None = None,
) -> str:
    """The context as JSON text in a provider's own shape, in the order it accepts.

    Messages that were stored in this format come back byte for byte.
    format: `openai`, `openai_responses`, `anthropic` or `gemini`.
    policy, token_budget: as for `get_context`.
    Errors: those of `get_context`.
    """


@_row(Policy)
def set_policy(
    name: str,
    strategy: str = "summary",
    token_budget: int = 8000,
    message_limit: int | None = None,
    step_tokens: int = 0,
    message_overhead: int = 0,
    start_on_user: bool = True,
    pin_last_user: bool = True,
    open_calls: str = "drop",
    summary_placement: str = "exchange",
    summary_threshold: int = 20000,
    summary_share: float = 0.8,
    memory_limit: int = 15,
    recall_limit: int = 0,
) -> Policy:
    """Set a context policy of the tenant, whole; for a service.

    What isn't given is the default, not the old value.
    name: `default` is for conversations that name none.
    strategy: `full`, `last_n`, `token_budget`, `summary` or `hybrid`.
    token_budget: the most tokens of a context, everything counted.
    message_limit: the most messages in the window of `last_n`.
    step_tokens: evict in steps of so many tokens, at most half the budget, so that the
        beginning stays the same and prompt caches hit; 0: no steps.
    message_overhead: tokens that each message costs beside its own.
    start_on_user: what stands before the first user message goes.
    pin_last_user: the newest user message is always kept.
    open_calls: `drop` calls without results, or `keep` the one at the end.
    summary_placement: as an `exchange` of two messages, or in the `system` text.
    summary_threshold, summary_share: a summary is due over share * threshold tokens.
    memory_limit, recall_limit: the most memories and recalled messages.
    Errors: InvalidArgument.
    """


@_row_or_none(Policy)
def get_policy(name: str) -> Policy | None:
    """The context policy of the tenant with this name, or None."""


@_rows(Policy)
def list_policies() -> list[Policy]:
    """The context policies of the tenant, by name."""


@_value
def delete_policy(name: str) -> bool:
    """Delete a context policy; for a service. Returns False when there was none.

    Conversations that name it go on with the tenant's default.
    """


# Turns


@_row(Request)
def prepare_request(
    conversation_id: Id,
    format: str,
    model: str | None = None,
    policy: str | None = None,
    token_budget: int | None = None,
    parameters: JsonObject | None = None,
) -> Request:
    """What is to be sent to a model, and a record that can give it again.

    `body` of the request is what you send: the rendered context, the model and the
    parameters. `Client.turn` does this and what follows.
    format: `openai`, `openai_responses`, `anthropic` or `gemini`.
    model: named in the body, but for `gemini`, whose address names it.
    policy, token_budget: as for `get_context`.
    parameters: members that join the body, such as `temperature` and `tools`; the tools
        count in the budget.
    Errors: those of `get_context`.
    """


@_rows(Message)
def complete_request(
    request_id: Id, response: Response, expected_seq: int | None = None
) -> list[Message]:
    """Store the answer to a request and what it cost; returns its messages.

    The same response again stores nothing, and gives the messages as they are now. An
    answer that was cut off keeps what is whole; its messages' `metadata` says so.
    response: the provider's whole response, or the message in it: JSON text as it came,
        an object of the provider's SDK, or what `json.loads` gave.
    expected_seq: the last seq that the caller knows of; another one is a Conflict.
    Errors: RequestNotFound, InvalidMessage (not an answer in the request's format),
        IdempotencyMismatch (another one came before), Conflict, InvalidText,
        InvalidJson, ConversationDeleted.
    """


@_nothing
def fail_request(request_id: Id, error: str, usage: JsonObject | None = None) -> None:
    """Record a try that gave no answer, and what it cost.

    The request may be tried again, fail again, or be completed.
    error: what happened; only its first 2,000 characters are kept.
    usage: the usage of the provider's response, if there was one.
    Errors: RequestNotFound, IdempotencyMismatch (it was completed), InvalidArgument,
        ConversationDeleted.
    """


@_value
def replay_request(request_id: Id) -> str:
    """The exact body of a request, whatever was edited, deleted or summarised since.

    Errors: RequestNotFound, NotReplayable; `detail` names what was erased.
    """


@_rows(Request)
def list_requests(
    conversation_id: Id, at: datetime | None = None, page_size: int = 30
) -> list[Request]:
    """Requests of a conversation, newest first, without their bodies.

    at: only those prepared at this time or before, so the first is what the model saw.
    page_size: 0 to 1,000.
    Errors: InvalidArgument.
    """


# Summaries


@_row(Summary)
def save_summary(
    conversation_id: Id,
    content: str,
    through_seq: int,
    previous_through_seq: int,
    tokens: int | None = None,
    model: str | None = None,
) -> Summary:
    """Save a summary of everything up to a message; the messages stay as they are.

    through_seq: it covers the groups that begin there or before; the newest user
        message and calls without results can't be covered.
    previous_through_seq: the summary that it was made from, 0 for none. If another one
        came in between it is a Conflict, and nothing is saved.
    tokens: its size in tokens; None lets the database estimate it.
    Errors: Conflict, ConversationNotFound, ConversationDeleted, InvalidArgument.
    """


# Search


@_rows(FoundMessage)
def search_messages(
    query: str, conversation_id: Id | None = None, page_size: int = 20
) -> list[FoundMessage]:
    """Live messages that have words of the query, best first. Any text is a query.

    conversation_id: None searches all conversations that the caller may see.
    page_size: 0 to 1,000 messages; more is 1,000.
    Errors: InvalidArgument.
    """


@_nothing
def store_embedding(
    conversation_id: Id, seq: int, model: str, embedding: Sequence[float]
) -> None:
    """Keep what a message means to a model, instead of an earlier one.

    It is of the revision that was claimed, else of the present one.
    embedding: 1 to 16,000 finite numbers, not all 0, as many as the first one stored of
        this model in the tenant.
    Errors: FeatureNotAvailable, ConversationNotFound, ConversationDeleted,
        MessageNotFound, InvalidArgument.
    """


@_rows(ClaimedMessage)
def claim_embeddings(model: str, page_size: int = 100) -> list[ClaimedMessage]:
    """Messages of the tenant without an embedding, for one worker; for a service.

    Nobody else gets them for 10 minutes. Commit before the vectors are computed.
    page_size: 0 to 1,000 messages; more is 1,000.
    Errors: FeatureNotAvailable, InvalidArgument.
    """


@_rows(FoundMessage)
def search_similar(
    embedding: Sequence[float],
    model: str,
    conversation_id: Id | None = None,
    page_size: int = 20,
) -> list[FoundMessage]:
    """Live messages that mean nearly the same, nearest first; `score` is the cosine.

    embedding: of what is looked for, by that model.
    conversation_id, page_size: as for `search_messages`.
    Errors: FeatureNotAvailable, InvalidArgument.
    """


@_rows(FoundMessage)
def search_hybrid(
    query: str,
    embedding: Sequence[float],
    model: str,
    conversation_id: Id | None = None,
    page_size: int = 20,
) -> list[FoundMessage]:
    """Live messages that fit a query by its words and by its meaning, best first.

    embedding: of the query, by that model.
    conversation_id, page_size: as for `search_messages`.
    Errors: FeatureNotAvailable, InvalidArgument.
    """


@_value
def summary_due(conversation_id: Id) -> bool:
    """Whether the conversation should be summarised, by its policy.

    It should when the live tokens since the last summary are over `summary_share` of
    `summary_threshold`.
    Errors: ConversationNotFound, ConversationDeleted.
    """


@_rows(ClaimedSummary)
def claim_summaries(
    lease: timedelta = timedelta(minutes=5), page_size: int = 10
) -> list[ClaimedSummary]:
    """Conversations of the tenant whose summary is due, for one worker; for a service.

    Nobody else gets them until the summary is saved or the lease is over.
    lease: at most a day. page_size: 0 to 1,000 conversations; more is 1,000.
    Errors: InvalidArgument.
    """


@_row_or_none(SummaryBatch)
def summary_batch(conversation_id: Id, message_limit: int = 20) -> SummaryBatch | None:
    """What the next summary is to be made from, or None if that is nothing.

    The oldest messages after the last summary: groups whole, without calls that wait
    for their results, and not the newest user message and what follows it.
    message_limit: 0 to 1,000 messages; more is 1,000. A larger group comes alone.
    Errors: ConversationNotFound, ConversationDeleted, InvalidArgument.
    """


@_rows(StaleSummary)
def list_stale_summaries(page_size: int = 30) -> list[StaleSummary]:
    """Summaries in use under which a message changed since they were saved.

    page_size: 0 to 1,000 rows; more is 1,000.
    Errors: InvalidArgument.
    """


# Memories


@_rows(Memory)
def remember(facts: Facts, source_conversation_id: Id | None = None) -> list[Memory]:
    """Keep facts about the user of the context, by key; return them by key.

    A new value for a key is a new version; the same one again is not.
    facts: objects with `key`, `value` and perhaps `expires_at`, a time as text. Ones
        without key or value are left out.
    source_conversation_id: where the facts come from.
    Errors: InvalidArgument, InvalidJson.
    """


@_rows(Memory)
def recall(page_size: int = 15) -> list[Memory]:
    """What is known about the user of the context, last accessed first.

    page_size: 0 to 1,000 memories; more is 1,000.
    Errors: InvalidArgument.
    """


@_value
def forget(key: str) -> int:
    """Forget a fact about the user, with all its versions; return how many, 0 or 1."""


@_value
def forget_all() -> int:
    """Forget all facts about the user, for good; return how many there were."""


# Retention


@_row(RetentionPolicy)
def set_retention(
    retention_class: str,
    max_age: timedelta | None,
    basis: str = "activity",
    action: str = "delete",
) -> RetentionPolicy:
    """Say how long conversations of a class are kept; for a service.

    max_age: None keeps them for ever.
    basis: what age counts from, `activity` or `creation`.
    action: what the purge does, `delete`.
    Errors: InvalidArgument.
    """


@_row(Conversation)
def hold_conversation(conversation_id: Id, reason: str) -> Conversation:
    """Put a conversation on legal hold: nothing deletes it; for a service.

    Errors: ConversationNotFound, ConversationDeleted, InvalidArgument.
    """


@_row(Conversation)
def release_conversation(conversation_id: Id, reason: str) -> Conversation:
    """End a legal hold; for a service.

    Errors: ConversationNotFound, ConversationDeleted, InvalidArgument.
    """


@_row(PurgeResult)
def purge(is_dry_run: bool = False, page_size: int = 500) -> PurgeResult:
    """Purge one batch of what is due, in all tenants; for the maintainer.

    is_dry_run: only count. page_size: conversations in the batch, 0 to 1,000.
    Errors: InvalidArgument.
    """


@_procedure
def purge_all(page_size: int = 500, max_batches: int | None = None) -> None:
    """Purge batch by batch, with a commit after each; for the maintainer.

    page_size: conversations in a batch. max_batches: None goes on until nothing is due.
    Errors: InvalidArgument; psycopg's InvalidTransactionTermination when the connection
        isn't in autocommit, or is inside a transaction.
    """
