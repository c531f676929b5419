"""The rules of get_context and save_summary in Python, written from the contract alone.

Slow and simple: every rule looks at the whole conversation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SUMMARY_QUESTION_TOKENS = 6


@dataclass(frozen=True)
class Policy:
    """What set_policy takes, as far as the rules below need it."""

    strategy: str = "summary"
    token_budget: int = 8000
    message_limit: int | None = None
    step_tokens: int = 0
    message_overhead: int = 0
    start_on_user: bool = True
    pin_last_user: bool = True
    open_calls: str = "drop"
    summary_placement: str = "exchange"


@dataclass(frozen=True)
class Message:
    """A stored message, deleted or not."""

    seq: int
    group_seq: int
    role: str
    tokens: int
    says_something: bool
    call_ids: list[str] = field(default_factory=list)
    result_ids: list[str] = field(default_factory=list)
    is_deleted: bool = False


@dataclass(frozen=True)
class Conversation:
    """All of its messages, its prompt's tokens and its summaries' by through_seq."""

    messages: list[Message]
    prompt_tokens: int | None = None
    summaries: dict[int, int] = field(default_factory=dict)

    @property
    def live(self) -> list[Message]:
        return [m for m in self.messages if not m.is_deleted]

    @property
    def through_seq(self) -> int:
        return max(self.summaries, default=0)


class NoRoom(Exception):
    """PC020, with its DETAIL."""

    def __init__(self, needed: int, available: int, has_user_message: bool) -> None:
        super().__init__(needed, available, has_user_message)
        self.detail = {
            "needed": needed,
            "available": available,
            "has_user_message": has_user_message,
        }


Item = tuple[str, int | None, str, int]  # kind, seq, role, tokens


def body(conversation: Conversation, covered: int) -> list[Message]:
    """What a window may hold: live, not a system message, not summarised."""
    return [
        m for m in conversation.live if m.role != "system" and m.group_seq > covered
    ]


def sound(group: list[Message]) -> tuple[list[Message], bool]:
    """The messages of a group without orphan results; whether a call is open."""
    waiting: list[str] = []
    members = []
    for message in sorted(group, key=lambda m: m.seq):
        answered = [i for i in message.result_ids if i in waiting]
        if message.result_ids and not answered:
            continue  # a result without a call
        for call_id in answered:
            waiting.remove(call_id)
        waiting += message.call_ids
        members.append(message)
    return members, bool(waiting)


def groups(messages: list[Message], open_calls: str) -> list[list[Message]]:
    """The groups that a provider accepts, newest first."""
    found: list[list[Message]] = []
    for group_seq in sorted({m.group_seq for m in messages}, reverse=True):
        members, is_open = sound([m for m in messages if m.group_seq == group_seq])
        may_be_open = open_calls == "keep" and not found
        if is_open and not may_be_open:
            continue
        if any(m.says_something for m in members):
            found.append(members)
    return found


def fixed_items(conversation: Conversation, policy: Policy) -> list[Item]:
    """What comes off the budget first."""
    items: list[Item] = []
    if conversation.prompt_tokens is not None:
        items.append(("system", None, "system", conversation.prompt_tokens))
    items += [
        ("system", m.seq, m.role, m.tokens)
        for m in conversation.live
        if m.role == "system" and m.says_something
    ]
    through = conversation.through_seq
    if policy.strategy in ("summary", "hybrid") and through:
        tokens = conversation.summaries[through]
        if policy.summary_placement == "exchange":
            items.append(("summary", through, "user", SUMMARY_QUESTION_TOKENS))
            items.append(("summary", through, "assistant", tokens))
        else:
            items.append(("summary", through, "system", tokens))
    return items


def context(conversation: Conversation, policy: Policy) -> list[Item]:
    """What get_context gives, in order; raises NoRoom."""
    overhead = policy.message_overhead
    is_summarised = policy.strategy in ("summary", "hybrid")
    covered = conversation.through_seq if is_summarised else 0
    fixed = fixed_items(conversation, policy)
    messages = body(conversation, covered)
    candidates = groups(messages, policy.open_calls)

    def cost(*some: list[Message]) -> int:
        return sum(m.tokens + overhead for group in some for m in group)

    def stepped(budget: int) -> int:
        total, step = cost(messages), policy.step_tokens
        if not step or total <= budget:
            return budget
        return total - -(-(total - budget) // step) * step

    def newest(budget: int) -> list[list[Message]]:
        window = candidates[:1]
        for group in candidates[1:]:
            size = sum(map(len, [*window, group]))
            if cost(*window, group) > stepped(budget):
                break
            if policy.strategy == "last_n" and size > (policy.message_limit or 0):
                break
            window.append(group)
        return window

    fixed_cost = sum(tokens + overhead for *_, tokens in fixed)
    room = policy.token_budget - fixed_cost
    window = candidates if policy.strategy == "full" else newest(room)
    must = window if policy.strategy == "full" else window[:1]
    users = [m for m in messages if m.role == "user" and m.says_something]
    pinned: list[Message] = []
    if not any(m.role == "user" for group in window for m in group):
        if policy.pin_last_user:
            pinned = users[-1:]
        window = newest(room - cost(pinned))
    kept = sorted(
        [*pinned, *(m for group in window for m in group)],
        key=lambda m: (m.group_seq, m.seq),
    )
    places = [place for place, m in enumerate(kept) if m.role == "user"]
    if (
        not candidates
        or cost(pinned, *must) > room
        or (policy.start_on_user and not places)
    ):
        needed = cost(pinned, *must)
        if users and not places:  # all that came since a user message
            since = [m for m in messages if m.group_seq >= users[-1].seq]
            needed = max(needed, cost(since))
        raise NoRoom(fixed_cost + needed, policy.token_budget, bool(users))
    if policy.start_on_user:
        kept = kept[places[0] :]
    return [*fixed, *(("message", m.seq, m.role, m.tokens) for m in kept)]


def may_summarise(conversation: Conversation, through_seq: int) -> bool:
    """Whether save_summary takes this through_seq."""
    fresh = body(conversation, conversation.through_seq)
    covered = [m for m in fresh if m.group_seq <= through_seq]
    users = [m for m in conversation.live if m.role == "user" and m.says_something]
    return (
        conversation.through_seq < through_seq <= len(conversation.messages)
        and not (users and through_seq >= users[-1].seq)
        and not any(
            sound([m for m in covered if m.group_seq == group_seq])[1]
            for group_seq in {m.group_seq for m in covered}
        )
    )
