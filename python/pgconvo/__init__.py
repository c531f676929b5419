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
from .streaming import StreamedResponse
from .summaries import SummaryRun, summarize, summarize_async
from .tokens import sign_context
from .turns import AsyncTurn, Turn

__all__ = [
    "AlreadyApplied",
    "AlreadyInTransaction",
    "AsyncClient",
    "AsyncTurn",
    "BudgetExceeded",
    "ClaimedMessage",
    "ClaimedSummary",
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
    "Memory",
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
    "StaleSummary",
    "StreamedResponse",
    "Summary",
    "SummaryBatch",
    "SummaryRun",
    "Turn",
    "WindowMessage",
    "embed",
    "embed_async",
    "sign_context",
    "summarize",
    "summarize_async",
]
