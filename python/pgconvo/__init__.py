"""LLM conversation history in PostgreSQL: the thin Python wrapper of pgconvo.

    with psycopg.connect(...) as connection:
        client = Client(connection)
        with client.acting_as("acme", "ann"):
            conversation_id = client.create_conversation(title="Hello")
            client.append_message(conversation_id, "user", "Hi")

One method for each SQL function, with the same names, arguments and defaults.
"""

from .client import AsyncClient, Client
from .errors import (
    AlreadyApplied,
    AlreadyInTransaction,
    BudgetExceeded,
    Conflict,
    ContextMissing,
    ConversationDeleted,
    ConversationNotFound,
    FeatureNotAvailable,
    IdempotencyMismatch,
    IdTaken,
    InvalidArgument,
    InvalidJson,
    InvalidMessage,
    InvalidText,
    InvalidToken,
    MessageNotFound,
    MigrationError,
    NotAllowed,
    NotInTransaction,
    NotReplayable,
    OnHold,
    OutOfOrder,
    PgconvoError,
    RequestNotFound,
)
from .records import (
    ContextItem,
    Conversation,
    ExplainedItem,
    Message,
    Policy,
    PurgeResult,
    Request,
    RetentionPolicy,
    Summary,
    WindowMessage,
)
from .streaming import StreamedResponse
from .tokens import sign_context
from .turns import AsyncTurn, Turn

__all__ = [
    "AlreadyApplied",
    "AlreadyInTransaction",
    "AsyncClient",
    "AsyncTurn",
    "BudgetExceeded",
    "Client",
    "Conflict",
    "ContextItem",
    "ContextMissing",
    "Conversation",
    "ConversationDeleted",
    "ConversationNotFound",
    "ExplainedItem",
    "FeatureNotAvailable",
    "IdTaken",
    "IdempotencyMismatch",
    "InvalidArgument",
    "InvalidJson",
    "InvalidMessage",
    "InvalidText",
    "InvalidToken",
    "Message",
    "MessageNotFound",
    "MigrationError",
    "NotAllowed",
    "NotInTransaction",
    "NotReplayable",
    "OnHold",
    "OutOfOrder",
    "PgconvoError",
    "Policy",
    "PurgeResult",
    "Request",
    "RequestNotFound",
    "RetentionPolicy",
    "StreamedResponse",
    "Summary",
    "Turn",
    "WindowMessage",
    "sign_context",
]
