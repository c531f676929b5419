"""LLM conversation history in PostgreSQL: the thin Python wrapper of pgconvo.

    with psycopg.connect(...) as connection:
        client = Client(connection)
        with client.acting_as("acme", "ann"):
            conversation_id = client.create_conversation(title="Hello")
            client.append_message(conversation_id, "user", "Hi")

One method for each SQL function, with the same names, arguments and defaults.
"""

from .client import AsyncClient, Client
from .embeddings import EmbeddingRun, embed, embed_async
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
    ClaimedMessage,
    ContextItem,
    Conversation,
    ExplainedItem,
    FoundMessage,
    Message,
    Policy,
    PurgeResult,
    RetentionPolicy,
    Summary,
    WindowMessage,
)

__all__ = [
    "AlreadyApplied",
    "AlreadyInTransaction",
    "AsyncClient",
    "BudgetExceeded",
    "ClaimedMessage",
    "Client",
    "Conflict",
    "ContextItem",
    "ContextMissing",
    "Conversation",
    "ConversationDeleted",
    "ConversationNotFound",
    "EmbeddingRun",
    "ExplainedItem",
    "FeatureNotAvailable",
    "FoundMessage",
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
    "RequestNotFound",
    "RetentionPolicy",
    "Summary",
    "WindowMessage",
    "embed",
    "embed_async",
]
