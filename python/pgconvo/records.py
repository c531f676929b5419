"""The rows that the functions return, as immutable dataclasses.

A field is a column of the same name, in the same order. Times are aware datetimes in
the session's time zone, with millisecond precision. Token counts are whole tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of one user (`convo.conversation_record`).

    `last_seq` is the highest seq ever given (0: none), `message_count` counts the live
    messages and `token_total` their tokens. `archived_at` is None for one that isn't
    archived. `forked_from` and `forked_at_seq` say where a fork was taken.
    """

    conversation_id: UUID
    user_id: str
    title: str | None
    system_prompt: str | None
    retention_class: str
    policy: str | None
    last_seq: int
    message_count: int
    token_total: int
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    is_on_hold: bool
    forked_from: UUID | None
    forked_at_seq: int | None


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it is now (`convo.message_record`).

    `seq` starts at 1 in each conversation, without gaps. `payload` is the provider's
    own JSON text, byte for byte, or None for a plain text message; `json.loads` reads
    it. `content` is the text of it. `group_seq` is the seq of the first of the messages
    that a provider accepts only together. `revision` grows with each edit.
    `is_estimated` says that the database estimated `tokens`. `deleted_at` is None for a
    live message.
    """

    seq: int
    role: str
    content: str | None
    tokens: int
    is_estimated: bool
    created_at: datetime
    revision: int
    model: str | None
    payload: str | None
    format: str | None
    metadata: dict[str, Any]
    group_seq: int
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """A message of a token window.

    `running_tokens` is the number of tokens from the newest message back to this one's
    group, that group included.
    """

    seq: int
    role: str
    content: str | None
    tokens: int
    running_tokens: int


@dataclass(frozen=True, slots=True)
class ContextItem:
    """An item of a context (`convo.context_record`), in the order they are sent in.

    `kind` is `system`, `memory`, `summary`, `recalled` or `message`. `seq` is None for
    the system prompt and the seq that it covers for a summary. `running_tokens` adds up
    from the first item.
    """

    ordinal: int
    kind: str
    seq: int | None
    role: str
    content: str | None
    tokens: int
    running_tokens: int


@dataclass(frozen=True, slots=True)
class ExplainedItem:
    """An item considered for a context, kept or not.

    `running_tokens` adds up the kept ones and is None for the others. `reason` is
    `kept`, or why it isn't.
    """

    seq: int | None
    role: str
    kind: str
    tokens: int
    running_tokens: int | None
    is_kept: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Policy:
    """The rule by which contexts are made (`convo.policy_record`).

    `set_policy` explains each field.
    """

    name: str
    strategy: str
    token_budget: int
    message_limit: int | None
    step_tokens: int
    message_overhead: int
    start_on_user: bool
    pin_last_user: bool
    open_calls: str
    summary_placement: str
    summary_threshold: int
    summary_share: float
    memory_limit: int
    recall_limit: int


@dataclass(frozen=True, slots=True)
class Request:
    """What was sent to a model (`convo.request_record`).

    `body` is the exact text, None in lists; `body_sha256` is the hash of it in UTF-8.
    `token_count` is what it was reckoned to cost, tools included. `first_seq` and
    `last_seq` are those of the messages in it. `status` is `prepared`, `completed` or
    `failed`; `finished_at` is None for a prepared one. `renderer` is the number of the
    code that wrote the body.
    """

    request_id: UUID
    conversation_id: UUID
    format: str
    model: str | None
    policy: str
    body: str | None
    body_sha256: bytes
    token_count: int
    first_seq: int | None
    last_seq: int | None
    status: str
    created_at: datetime
    finished_at: datetime | None
    renderer: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the groups that begin at `through_seq` or before.

    It is a `convo.summary_record`. `model` is the model that wrote it, or None.
    """

    through_seq: int
    content: str
    tokens: int
    model: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SummaryBatch:
    """What the next summary is made from (`convo.summary_batch_record`).

    `previous_summary` is the text of the summary before it and `previous_through_seq`
    what that one covers; None and 0 if there is none. `messages` is a JSON array of
    objects with `seq`, `role`, `content`, `calls` and `results`, as text; `tokens` are
    theirs. `through_seq` is what `save_summary` takes.
    """

    previous_summary: str | None
    previous_through_seq: int
    through_seq: int
    messages: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ClaimedSummary:
    """A conversation whose summary is due, claimed for one worker.

    `body_tokens` are its live tokens since the last summary.
    """

    conversation_id: UUID
    user_id: str
    body_tokens: int


@dataclass(frozen=True, slots=True)
class StaleSummary:
    """A summary in use under which a message changed since it was saved.

    `changed_seq` is the first such message.
    """

    conversation_id: UUID
    through_seq: int
    changed_seq: int


@dataclass(frozen=True, slots=True)
class Memory:
    """What is known about a user under a key (`convo.memory_record`).

    `version` grows with each new value. `source_conversation_id` is the conversation
    that the value came from, or None. `expires_at` None: it stays.
    """

    key: str
    value: str
    version: int
    source_conversation_id: UUID | None
    created_at: datetime
    updated_at: datetime
    last_accessed_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that a search found (`convo.search_record`), best first.

    `snippet` is the part of it that fits the query best, with U+27E6 and U+27E7 around
    the words that were found. `score` compares the rows of one search only.
    """

    conversation_id: UUID
    seq: int
    role: str
    snippet: str
    score: float
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ClaimedMessage:
    """A message without an embedding, claimed for one worker.

    `revision` is the version of it that `content` is.
    """

    conversation_id: UUID
    seq: int
    revision: int
    content: str


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long conversations of a class are kept (`convo.retention_record`).

    `max_age` None keeps them for ever. Age counts from `basis`; then `action` is done.
    """

    retention_class: str
    max_age: timedelta | None
    basis: str
    action: str


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """What one batch of the purge did, or would do (`convo.purge_record`).

    `conversations` and `messages` are counts of what went; `held` counts what was due
    and stayed because of a legal hold.
    """

    conversations: int
    messages: int
    held: int
    started_at: datetime
    finished_at: datetime
    is_dry_run: bool
