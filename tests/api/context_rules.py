"""The rules of get_context and save_summary in Python, written from the contract alone.

Slow and simple: every rule looks at the whole conversation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

SUMMARY_QUESTION_TOKENS = 6
# A call waits for its result until so many user messages came after it.
GIVEN_UP_AFTER = 10


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
    memory_limit: int = 15
    recall_limit: int = 0


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
    """All of its messages, its prompt's tokens and its summaries' by through_seq.

    memory_tokens are those of what is known about its owner. recalls are the seqs that
    a search finds, best first.
    """

    messages: list[Message]
    prompt_tokens: int | None = None
    summaries: dict[int, int] = field(default_factory=dict)
    memory_tokens: int | None = None
    recalls: list[int] = field(default_factory=list)

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
    if conversation.memory_tokens is not None:
        items.append(("memory", None, "system", conversation.memory_tokens))
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
    items = fixed_items(conversation, policy)
    pinned, kept = window(conversation, policy, items)
    if policy.strategy == "hybrid" and policy.recall_limit:
        found = recalled(conversation, policy, items, pinned, kept)
        items += [("recalled", m.seq, m.role, m.tokens) for m in found]
        pinned, kept = window(conversation, policy, items)
    return items + [("message", m.seq, m.role, m.tokens) for m in pinned + kept]


def recalled(
    conversation: Conversation,
    policy: Policy,
    items: list[Item],
    pinned: list[Message],
    kept: list[Message],
) -> list[Message]:
    """Whole groups from before the window: half of what its newest turn leaves."""

    def cost(tokens: Iterable[int]) -> int:
        return sum(count + policy.message_overhead for count in tokens)

    users = [m for m in kept if m.role == "user"]
    turn = users[-1].group_seq if users else kept[-1].group_seq
    room = policy.token_budget - policy.step_tokens
    room -= cost(tokens for *_, tokens in items)
    room -= cost(
        m.tokens for m in [*pinned, *kept] if m in pinned or m.group_seq >= turn
    )
    room //= 2
    first = min(m.group_seq for m in kept)
    by_seq = {m.seq: m for m in conversation.live if m.role != "system"}
    done = {m.group_seq for m in pinned}
    found: list[Message] = []
    for seq in conversation.recalls:
        if seq >= first or seq not in by_seq or by_seq[seq].group_seq in done:
            continue
        group_seq = by_seq[seq].group_seq
        done.add(group_seq)
        members, is_open = sound(
            [m for m in by_seq.values() if m.group_seq == group_seq]
        )
        if is_open or not any(m.says_something for m in members):
            continue
        if (needed := cost(m.tokens for m in members)) <= room:
            room -= needed
            found += members
    return sorted(found, key=lambda m: (m.group_seq, m.seq))


def covered(conversation: Conversation, policy: Policy) -> int:
    """What the summary stands for in this context."""
    is_summarised = policy.strategy in ("summary", "hybrid")
    return conversation.through_seq if is_summarised else 0


def window(
    conversation: Conversation, policy: Policy, fixed: list[Item]
) -> tuple[list[Message], list[Message]]:
    """The newest user message if it is put in front, and the window."""
    overhead = policy.message_overhead
    messages = body(conversation, covered(conversation, policy))
    candidates = groups(messages, policy.open_calls)

    def cost(*some: list[Message]) -> int:
        return sum(m.tokens + overhead for group in some for m in group)

    def stepped(budget: int) -> int:
        total, step = cost(messages), policy.step_tokens
        if not step or total <= budget:
            return budget
        return total - -(-(total - budget) // step) * step

    def newest(budget: int) -> list[list[Message]]:
        chosen = candidates[:1]
        for group in candidates[1:]:
            size = sum(map(len, [*chosen, group]))
            if cost(*chosen, group) > stepped(budget):
                break
            if policy.strategy == "last_n" and size > (policy.message_limit or 0):
                break
            chosen.append(group)
        return chosen

    fixed_cost = sum(tokens + overhead for *_, tokens in fixed)
    room = policy.token_budget - fixed_cost
    chosen = candidates if policy.strategy == "full" else newest(room)
    must = chosen if policy.strategy == "full" else chosen[:1]
    users = [m for m in messages if m.role == "user" and m.says_something]
    pinned: list[Message] = []
    if not any(m.role == "user" for group in chosen for m in group):
        if policy.pin_last_user:
            pinned = users[-1:]
        chosen = newest(room - cost(pinned))
    kept = sorted(
        [*pinned, *(m for group in chosen for m in group)],
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
    return pinned, [m for m in kept if m not in pinned]


def may_summarise(conversation: Conversation, through_seq: int) -> bool:
    """Whether save_summary takes this through_seq."""
    fresh = body(conversation, conversation.through_seq)
    inside = [m for m in fresh if m.group_seq <= through_seq]
    users = [m for m in conversation.live if m.role == "user" and m.says_something]
    groups_left = [m.group_seq for m in body(conversation, 0)]
    end = users[-1].seq if users else max(groups_left, default=None)
    return (
        conversation.through_seq < through_seq <= len(conversation.messages)
        and bool(inside)
        and not (end is not None and through_seq >= end)
        and not any(
            sound([m for m in inside if m.group_seq == group_seq])[1]
            for group_seq in {m.group_seq for m in inside}
            if len([m for m in users if m.seq > group_seq]) < GIVEN_UP_AFTER
        )
    )


def summary_batch(
    conversation: Conversation, message_limit: int
) -> tuple[int, list[int]] | None:
    """What summary_batch gives: through_seq and the seqs of its messages."""
    fresh = body(conversation, conversation.through_seq)
    through, seqs = 0, list[int]()
    for group_seq in sorted({m.group_seq for m in fresh}):
        if not message_limit or not may_summarise(conversation, group_seq):
            break
        group = [m for m in fresh if m.group_seq == group_seq]
        told = [m.seq for members in groups(group, "drop") for m in members]
        if seqs and len(seqs) + len(told) > message_limit:
            break
        through = group_seq
        seqs += told
    return (through, seqs) if seqs else None
