"""The errors of pgconvo, one class for each SQLSTATE of the contract.

All derive from `PgconvoError`, which doesn't depend on the driver; the driver's own
error is its `__cause__`. What isn't in the contract (a lost connection, a deadlock,
text that isn't JSON) stays the driver's error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg


class PgconvoError(Exception):
    """The base of all errors of pgconvo.

    sqlstate: five characters, or None when nothing was sent to the database.
    message: what is wrong; constant for each kind of error.
    detail: ids and numbers, never content, e.g. `{"last_seq": 4}`; else `{}`.
    hint: one thing to do, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str | None = None,
        detail: dict[str, Any] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.detail = detail or {}
        self.hint = hint

    def __str__(self) -> str:
        """Message, detail as JSON, and hint, as far as there are any."""
        detail = json.dumps(self.detail) if self.detail else None
        return " | ".join(filter(None, [self.message, detail, self.hint]))


class ConversationNotFound(PgconvoError):
    """PC001: there is no such conversation, or it isn't the caller's."""


class MessageNotFound(PgconvoError):
    """PC002: there is no such message, or it isn't the caller's."""


class RequestNotFound(PgconvoError):
    """PC003: there is no such request, or it isn't the caller's."""


class Conflict(PgconvoError):
    """PC010: somebody was first: the expected seq or revision isn't the current one.

    `detail` has the current one. Read again, decide again, then retry.
    """


class IdempotencyMismatch(PgconvoError):
    """PC011: the idempotency key or request id was used for other content."""


class ConversationDeleted(PgconvoError):
    """PC012: the caller's conversation was deleted; its id brings nothing back."""


class IdTaken(PgconvoError):
    """PC013: another user of the tenant has or had a conversation with this id."""


class BudgetExceeded(PgconvoError):
    """PC020: what must be kept doesn't fit the token budget.

    `detail` has the tokens needed and available.
    """


class ContextMissing(PgconvoError):
    """PC030: no tenant or user is set in this transaction."""


class InvalidToken(PgconvoError):
    """PC031: the signed context token is bad, forged or expired."""


class OnHold(PgconvoError):
    """PC040: the conversation is on legal hold."""


class InvalidMessage(PgconvoError):
    """PC050: a message isn't valid in its format; `detail` has index and reason."""


class NotReplayable(PgconvoError):
    """PC060: a request can't be replayed exactly; `detail` names what is gone."""


class MigrationError(PgconvoError):
    """The base of the errors of migrations."""


class AlreadyApplied(MigrationError):
    """PC090: the migration was applied already."""


class OutOfOrder(MigrationError):
    """PC091: the migration isn't the next one."""


class NotInTransaction(MigrationError):
    """PC092: the migration doesn't run inside one transaction."""


class InvalidArgument(PgconvoError):
    """22023: an argument has a value that isn't allowed."""


class NotAllowed(PgconvoError):
    """42501: the role may not do this."""


class FeatureNotAvailable(PgconvoError):
    """0A000: an optional part of the schema isn't installed."""


class InvalidText(PgconvoError, ValueError):
    """Refused before sending: PostgreSQL can't hold this text.

    It has U+0000 or a lone surrogate, or is not UTF-8.
    """


class InvalidJson(PgconvoError, ValueError):
    """Refused before sending: NaN, infinity or a cycle can't be written as JSON."""


class AlreadyInTransaction(PgconvoError, RuntimeError):
    """Refused before sending: `acting_as` and `turn` begin their own transactions."""


_BY_SQLSTATE: dict[str, type[PgconvoError]] = {
    "PC001": ConversationNotFound,
    "PC002": MessageNotFound,
    "PC003": RequestNotFound,
    "PC010": Conflict,
    "PC011": IdempotencyMismatch,
    "PC012": ConversationDeleted,
    "PC013": IdTaken,
    "PC020": BudgetExceeded,
    "PC030": ContextMissing,
    "PC031": InvalidToken,
    "PC040": OnHold,
    "PC050": InvalidMessage,
    "PC060": NotReplayable,
    "PC090": AlreadyApplied,
    "PC091": OutOfOrder,
    "PC092": NotInTransaction,
    "22023": InvalidArgument,
    "42501": NotAllowed,
    "0A000": FeatureNotAvailable,
}


@contextmanager
def converted() -> Iterator[None]:
    """Turn the driver's errors into those of pgconvo; let all others pass untouched."""
    try:
        yield
    except psycopg.Error as error:
        error_class = _BY_SQLSTATE.get(error.sqlstate or "")
        if error_class is None:
            raise
        raise error_class(
            error.diag.message_primary or str(error),
            sqlstate=error.sqlstate,
            detail=_json_object(error.diag.message_detail),
            hint=error.diag.message_hint,
        ) from error


def _json_object(text: str | None) -> dict[str, Any]:
    """Read a DETAIL; PostgreSQL's own ones are prose, and give `{}`."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
