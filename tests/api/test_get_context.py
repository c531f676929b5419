"""get_context: what should be sent, by the rule that the policy declares."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

TURNS = (310, 295, 402, 388, 517, 64)


def kept(caller, conversation_id, **options):
    """The seqs of the messages in a context."""
    return [
        item["seq"]
        for item in caller.context(conversation_id, **options)
        if item["kind"] == "message"
    ]


def calls(*call_ids):
    function = {"name": "f", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": i, "type": "function", "function": function} for i in call_ids
        ],
    }


def result(call_id):
    return {"role": "tool", "tool_call_id": call_id, "content": "sesame"}


USER = {"role": "user", "content": "sesame"}
ASSISTANT = {"role": "assistant", "content": "sesame"}
EMPTY = {"role": "assistant", "content": " \n"}


@pytest.fixture
def policy(service):
    """Make a policy: policy("mine", token_budget=100)."""

    def policy(name="mine", **options):
        return service.row("set_policy", name=name, **options)["name"]

    return policy


@pytest.fixture
def append(ann, conversation_id):
    """Append messages of 10 tokens each: append(USER, calls("a"), result("a"))."""

    def append(*messages, tokens=10):
        ann.append(conversation_id, list(messages), tokens=[tokens] * len(messages))

    return append


# The window


def test_of_six_turns_a_budget_of_1500_keeps_the_newest_four(ann, conversation_id):
    ann.say(conversation_id, 40, role="system")
    ann.say(conversation_id, *TURNS)

    items = ann.context(conversation_id, token_budget=1500)

    columns = ("ordinal", "kind", "seq", "running_tokens")
    assert [tuple(item[column] for column in columns) for item in items] == [
        (1, "system", 1, 40),
        (2, "message", 4, 442),
        (3, "message", 5, 830),
        (4, "message", 6, 1347),
        (5, "message", 7, 1411),
    ]  # fmt: skip
    window = ann.window(conversation_id, 1460)
    assert [row["seq"] for row in window] == [4, 5, 6, 7]
    assert window[0]["running_tokens"] == 1371


def test_an_item_has_all_its_columns(ann, conversation_id):
    ann.say(conversation_id, 7)

    assert ann.context(conversation_id) == [
        {
            "ordinal": 1, "kind": "message", "seq": 1, "role": "user",
            "content": "sesame 1", "tokens": 7, "running_tokens": 7,
        }
    ]  # fmt: skip


def test_the_window_stops_at_the_first_group_that_does_not_fit(ann, conversation_id):
    ann.say(conversation_id, 5, 50, 10)

    assert kept(ann, conversation_id, token_budget=30) == [3]


@pytest.mark.parametrize(("budget", "seqs"), [(60, [1, 2, 3, 4]), (59, [4])])
def test_a_call_and_its_results_stay_or_go_together(
    ann, conversation_id, append, budget, seqs
):
    append(USER, calls("a"), result("a"))
    ann.say(conversation_id, 30)

    assert kept(ann, conversation_id, token_budget=budget) == seqs


def test_parallel_results_are_one_group(ann, conversation_id, append):
    append(USER, calls("a", "b"), result("b"), result("a"), ASSISTANT)

    assert kept(ann, conversation_id, token_budget=49) == [1, 5]
    assert kept(ann, conversation_id, token_budget=50) == [1, 2, 3, 4, 5]


def test_a_message_between_call_and_result_comes_after_both(
    ann, conversation_id, append
):
    append(USER, calls("a"), USER, result("a"))

    assert kept(ann, conversation_id) == [1, 2, 4, 3]


def test_it_starts_on_a_user_message(ann, conversation_id, policy, append):
    append(USER, ASSISTANT, USER, ASSISTANT)

    assert kept(ann, conversation_id, token_budget=30) == [3, 4]
    policy(token_budget=30, start_on_user=False)
    assert kept(ann, conversation_id, policy="mine") == [2, 3, 4]


# What must be kept


def test_the_newest_user_message_stands_in_front_of_a_long_tool_loop(
    ann, conversation_id, append
):
    append(USER, ASSISTANT, USER)
    for name in "abcd":
        append(calls(name), result(name))

    assert kept(ann, conversation_id, token_budget=55) == [3, 8, 9, 10, 11]
    assert kept(ann, conversation_id, token_budget=30) == [3, 10, 11]


def test_without_pin_the_newest_user_message_goes(ann, conversation_id, policy, append):
    append(USER, ASSISTANT, ASSISTANT)
    policy(token_budget=20, pin_last_user=False, start_on_user=False)

    assert kept(ann, conversation_id, policy="mine") == [2, 3]


def test_without_pin_a_start_on_user_needs_one_in_the_window(
    ann, conversation_id, policy, append, fails
):
    append(USER, ASSISTANT, ASSISTANT)
    policy(token_budget=20, pin_last_user=False)

    with fails("PC020", needed=30, available=20, has_user_message=True):
        ann.context(conversation_id, policy="mine")


@pytest.mark.parametrize("function", ["get_context", "explain_context"])
@pytest.mark.parametrize(
    ("messages", "budget", "needed", "has_user_message"),
    [
        ([], 1000, 0, False),
        ([ASSISTANT], 1000, 10, False),
        ([{"role": "system", "content": "sesame"}], 1000, 10, False),
        ([calls("a")], 1000, 0, False),
        ([USER], 9, 10, True),
        ([USER], 0, 10, True),
        ([USER, calls("a"), result("a")], 29, 30, True),
        ([{"role": "system", "content": "sesame"}, USER], 19, 20, True),
    ],
)
def test_what_must_be_kept_fits_or_it_fails(
    ann, conversation_id, append, fails, function, messages, budget, needed,
    has_user_message,
):  # fmt: skip
    if messages:
        append(*messages)

    with fails(
        "PC020", needed=needed, available=budget, has_user_message=has_user_message,
        conversation_id=conversation_id,
    ):  # fmt: skip
        ann.rows(function, conversation_id=conversation_id, token_budget=budget)


def test_a_prompt_that_alone_is_too_large_fails(ann, fails):
    conversation_id = ann.create(system_prompt="sesame " * 100)
    ann.say(conversation_id, 10)

    with fails("PC020", available=50) as detail:
        ann.context(conversation_id, token_budget=50)
    assert detail["needed"] > 100


# What is left out


def test_deleted_messages_are_left_out(ann, conversation_id):
    ann.say(conversation_id, 1, 2, 3)
    ann.row("delete_message", conversation_id=conversation_id, seq=2)

    assert kept(ann, conversation_id) == [1, 3]


def test_an_open_call_is_left_out_until_its_results_are_there(
    ann, conversation_id, append
):
    append(USER, calls("a", "b"), result("a"))
    assert kept(ann, conversation_id) == [1]

    append(result("b"))
    assert kept(ann, conversation_id) == [1, 2, 3, 4]


def test_a_tool_that_threw_does_not_stop_the_conversation(ann, conversation_id, append):
    append(USER, calls("a"), USER, ASSISTANT)

    assert kept(ann, conversation_id) == [1, 3, 4]


@pytest.mark.parametrize(
    ("after", "seqs"), [([], [1, 2]), ([EMPTY], [1, 2]), ([USER], [1, 3])]
)
def test_keep_keeps_an_open_call_at_the_end_only(
    ann, conversation_id, policy, append, after, seqs
):
    policy(open_calls="keep")
    append(USER, calls("a"), *after)

    assert kept(ann, conversation_id, policy="mine") == seqs


def test_a_result_without_its_call_is_left_out(ann, conversation_id, append):
    append(result("z"), USER, calls("a"), result("a"), result("a"))
    ann.row("delete_message", conversation_id=conversation_id, seq=3)
    assert kept(ann, conversation_id) == [2]

    ann.row("restore_message", conversation_id=conversation_id, seq=3)
    assert kept(ann, conversation_id) == [2, 3, 4]
    assert len(ann.live(conversation_id)) == 5


def test_call_ids_that_repeat_pair_within_their_occurrence(
    ann, conversation_id, append
):
    append(USER, calls("a"), result("a"), calls("a"), result("a"), calls("a"))

    assert kept(ann, conversation_id) == [1, 2, 3, 4, 5]


def test_messages_that_say_nothing_are_left_out(ann, conversation_id, append):
    append(USER, EMPTY, {"role": "user", "content": ""}, ASSISTANT)

    assert kept(ann, conversation_id) == [1, 4]


def test_an_empty_newest_user_message_is_no_user_turn(ann, conversation_id, append):
    append(USER, ASSISTANT, {"role": "user", "content": ""})

    assert kept(ann, conversation_id, token_budget=20) == [1, 2]


# System messages and prompt


def test_system_messages_are_pinned_wherever_they_stood(ann):
    conversation_id = ann.create(system_prompt="sesame")
    ann.say(conversation_id, 10, 10)
    ann.say(conversation_id, 5, role="system")
    ann.say(conversation_id, 10)

    items = ann.context(conversation_id, token_budget=20)

    assert [(i["kind"], i["seq"], i["role"]) for i in items] == [
        ("system", None, "system"),
        ("system", 3, "system"),
        ("message", 4, "user"),
    ]


def test_overhead_counts_for_each_message(ann, conversation_id, policy):
    ann.say(conversation_id, 5, role="system")
    ann.say(conversation_id, 10, 10, 10)
    policy(token_budget=36, message_overhead=3)
    assert kept(ann, conversation_id, policy="mine") == [3, 4]

    assert kept(ann, conversation_id, policy="mine", token_budget=33) == [4]


# Summaries


@pytest.fixture
def summarised(ann, conversation_id):
    """Six messages, the first three of them summarised, in 10 tokens."""
    ann.say(conversation_id, 100, 100, 100, 20, 30, 40)
    ann.summarise(conversation_id, 3)
    return conversation_id


def test_a_summary_stands_as_an_exchange_before_the_rest(ann, summarised):
    items = ann.context(summarised)

    assert [(i["kind"], i["seq"], i["role"], i["tokens"]) for i in items] == [
        ("summary", 3, "user", 6),
        ("summary", 3, "assistant", 10),
        ("message", 4, "user", 20),
        ("message", 5, "user", 30),
        ("message", 6, "user", 40),
    ]
    assert items[1]["content"] == "sesame summary"


def test_a_summary_stands_in_the_system_text(ann, summarised, policy):
    policy(summary_placement="system")

    items = ann.context(summarised, policy="mine")

    assert [(i["kind"], i["seq"], i["role"], i["tokens"]) for i in items[:2]] == [
        ("summary", 3, "system", 10),
        ("message", 4, "user", 20),
    ]


def test_only_the_newest_summary_stands_there(ann, summarised):
    ann.summarise(summarised, 5, 3, content="sesame newest")

    items = ann.context(summarised)

    assert [(i["kind"], i["seq"]) for i in items] == [
        ("summary", 5), ("summary", 5), ("message", 6),
    ]  # fmt: skip
    assert items[1]["content"] == "sesame newest"


def test_what_the_summary_covers_is_not_there_even_if_it_fits(ann, summarised):
    assert kept(ann, summarised, token_budget=100000) == [4, 5, 6]


def test_system_messages_that_a_summary_covers_stay(ann, conversation_id):
    ann.say(conversation_id, 5, role="system")
    ann.say(conversation_id, 5, 5)
    ann.summarise(conversation_id, 2)

    assert [i["kind"] for i in ann.context(conversation_id)] == [
        "system", "summary", "summary", "message",
    ]  # fmt: skip


def test_the_summary_comes_off_the_budget(ann, summarised):
    assert kept(ann, summarised, token_budget=16 + 70) == [5, 6]
    assert kept(ann, summarised, token_budget=16 + 69) == [6]


@pytest.mark.parametrize("strategy", ["full", "token_budget", "last_n"])
def test_other_strategies_don_t_know_summaries(ann, summarised, policy, strategy):
    policy(strategy=strategy, message_limit=100)

    items = ann.context(summarised, policy="mine")

    assert [(i["kind"], i["seq"]) for i in items] == [
        ("message", seq) for seq in range(1, 7)
    ]


def test_hybrid_that_recalls_nothing_is_as_summary(ann, summarised, policy):
    policy(strategy="hybrid")

    assert ann.context(summarised, policy="mine") == ann.context(summarised)


def test_hybrid_recalls_what_the_summary_covers(ann, summarised, policy):
    policy(strategy="hybrid", recall_limit=5)

    items = ann.context(summarised, policy="mine")

    recalled = [i["seq"] for i in items if i["kind"] == "recalled"]
    assert recalled == sorted(recalled) and set(recalled) <= {1, 2, 3}
    assert recalled
    assert next(i for i in items if i["kind"] == "message")["seq"] == 4


# Strategies


def test_full_is_all_or_nothing(ann, conversation_id, policy, fails):
    ann.say(conversation_id, 10, 20, 30)
    policy(strategy="full")
    assert kept(ann, conversation_id, policy="mine", token_budget=60) == [1, 2, 3]

    with fails("PC020", needed=60, available=59):
        ann.context(conversation_id, policy="mine", token_budget=59)


@pytest.mark.parametrize(
    ("limit", "seqs"), [(1, [5]), (2, [5]), (3, [5]), (4, [5]), (5, [1, 2, 3, 4, 5])]
)
def test_last_n_is_rounded_down_to_whole_groups(
    ann, conversation_id, policy, append, limit, seqs
):
    append(USER, calls("a", "b"), result("a"), result("b"), USER)
    policy(strategy="last_n", message_limit=limit)

    assert kept(ann, conversation_id, policy="mine") == seqs


def test_last_n_keeps_the_budget_too(ann, conversation_id, policy):
    ann.say(conversation_id, 10, 20, 30)
    policy(strategy="last_n", message_limit=3, token_budget=50)

    assert kept(ann, conversation_id, policy="mine") == [2, 3]


# Which policy counts


def test_the_policy_of_the_call_the_conversation_the_tenant_or_none(
    ann, service, policy
):
    """Each keeps another number of messages of 10 tokens."""
    policy("call", token_budget=10)
    policy("conversation", token_budget=20)
    policy("default", token_budget=30)
    conversation_id = ann.create(policy="conversation")
    ann.say(conversation_id, *[10] * 5)

    assert len(kept(ann, conversation_id, policy="call")) == 1
    assert len(kept(ann, conversation_id)) == 2
    assert len(kept(ann, conversation_id, token_budget=40)) == 4
    service.value("delete_policy", name="conversation")
    assert len(kept(ann, conversation_id)) == 3
    service.value("delete_policy", name="default")
    assert len(kept(ann, conversation_id)) == 5


def test_the_built_in_policy_has_a_budget_of_8000(ann, conversation_id, fails):
    ann.say(conversation_id, 1, 8000)
    assert kept(ann, conversation_id) == [2]

    ann.say(conversation_id, 8001)
    with fails("PC020", needed=8001, available=8000):
        ann.context(conversation_id)


def test_a_policy_of_another_tenant_is_none(ann, conversation_id, as_role, fails):
    as_role("test_service", "evil").row("set_policy", name="theirs")

    with fails("22023", argument="policy"):
        ann.context(conversation_id, policy="theirs")


def test_the_budget_of_the_call_is_at_least_two_steps(
    ann, conversation_id, policy, fails
):
    ann.say(conversation_id, 1)
    policy(token_budget=100, step_tokens=50)
    assert kept(ann, conversation_id, policy="mine", token_budget=100) == [1]

    with fails("22023", argument="token_budget", minimum=100):
        ann.context(conversation_id, policy="mine", token_budget=99)


@pytest.mark.parametrize("budget", [-1, -(2**31)])
def test_a_negative_budget_is_an_invalid_argument(ann, conversation_id, fails, budget):
    with fails("22023", argument="token_budget"):
        ann.context(conversation_id, token_budget=budget)


# Who may


@pytest.mark.parametrize("function", ["get_context", "explain_context"])
def test_not_there_and_not_yours_are_one_error(
    ann, outsider, conversation_id, fails, function
):
    ann.say(conversation_id, 10)
    for missing in (conversation_id, uuid4(), UUID(int=0)):
        with fails("PC001", conversation_id=missing):
            outsider.rows(function, conversation_id=missing)


@pytest.mark.parametrize("function", ["get_context", "explain_context"])
def test_a_deleted_conversation_says_so(ann, conversation_id, fails, function):
    ann.value("delete_conversation", conversation_id=conversation_id)

    with fails("PC012"):
        ann.rows(function, conversation_id=conversation_id)


def test_service_and_reader_read_the_same(ann, service, reader, conversation_id):
    ann.say(conversation_id, 10, 20)

    expected = ann.context(conversation_id)
    assert service.context(conversation_id) == expected
    assert reader.context(conversation_id) == expected


def test_without_a_tenant_it_says_so(unknown, conversation_id, fails):
    with fails("PC030"):
        unknown.context(conversation_id)


def test_it_follows_a_fork_and_a_transfer(ann, ben, service, summarised):
    fork = ann.value("fork_conversation", conversation_id=summarised)
    assert ann.context(fork) == ann.context(summarised)
    shorter = ann.value("fork_conversation", conversation_id=summarised, through_seq=2)
    assert kept(ann, shorter) == [1, 2]

    expected = ann.context(summarised)
    service.row("transfer_conversation", conversation_id=summarised, to_user_id="ben")
    assert ben.context(summarised) == expected
