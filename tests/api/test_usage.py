"""What calls cost: disjoint buckets, prices of their time, and the bill by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

BUCKETS = (
    "input_tokens", "cache_read_tokens", "cache_write_5m_tokens",
    "cache_write_1h_tokens", "output_tokens", "reasoning_tokens",
)  # fmt: skip
PRICES = [Decimal(p) for p in ("3", "0.3", "3.75", "6", "15", "15.5")]
ANSWERS = {
    "openai": {"choices": [{"message": {"role": "assistant", "content": "sesame"},
                            "finish_reason": "stop"}]},
    "openai_responses": {"status": "completed", "output": []},
    "anthropic": {"content": [], "stop_reason": "end_turn"},
    "gemini": {"candidates": [{"content": {"role": "model", "parts": []},
                               "finishReason": "STOP"}]},
}  # fmt: skip
# The usage of a provider, and its buckets worked out by hand.
CASES = {
    "openai": [
        ({"prompt_tokens": 100, "completion_tokens": 50}, (100, 0, 0, 0, 50, 0)),
        ({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
          "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 3},
          "completion_tokens_details": {"reasoning_tokens": 40, "audio_tokens": 1}},
         (36, 64, 0, 0, 10, 40)),
        ({"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 9},
          "completion_tokens": 5,
          "completion_tokens_details": {"reasoning_tokens": 6}},
         (0, 7, 0, 0, 0, 5)),
        ({"prompt_tokens": 7, "prompt_tokens_details": None}, (7, 0, 0, 0, 0, 0)),
        ({"prompt_tokens": 70, "prompt_tokens_details":
            {"cached_tokens": 20, "cache_write_tokens": 40}}, (10, 20, 40, 0, 0, 0)),
        # reasoning that only the total has, told or not
        ({"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 135,
          "completion_tokens_details": {"reasoning_tokens": 30}},
         (100, 0, 0, 0, 5, 30)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 20},
         (10, 0, 0, 0, 2, 8)),
    ],
    "openai_responses": [
        ({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64},
          "output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 40}},
         (36, 64, 0, 0, 10, 40)),
    ],
    "anthropic": [
        ({"input_tokens": 10, "output_tokens": 20}, (10, 0, 0, 0, 20, 0)),
        ({"input_tokens": 10, "cache_read_input_tokens": 30,
          "cache_creation_input_tokens": 50, "output_tokens": 20},
         (10, 30, 50, 0, 20, 0)),
        ({"input_tokens": 10, "cache_read_input_tokens": 30,
          "cache_creation_input_tokens": 50, "output_tokens": 20,
          "cache_creation": {"ephemeral_5m_input_tokens": 15,
                             "ephemeral_1h_input_tokens": 35},
          "output_tokens_details": {"thinking_tokens": 5}},
         (10, 30, 15, 35, 15, 5)),
        ({"input_tokens": 10, "cache_creation": {"ephemeral_1h_input_tokens": 35}},
         (10, 0, 0, 35, 0, 0)),
    ],
    "gemini": [
        ({"promptTokenCount": 100, "cachedContentTokenCount": 60,
          "toolUsePromptTokenCount": 5, "candidatesTokenCount": 20,
          "thoughtsTokenCount": 30, "totalTokenCount": 155},
         (45, 60, 0, 0, 20, 30)),
        ({"prompt_token_count": 100, "cached_content_token_count": 60,
          "candidates_token_count": 20, "thoughts_token_count": 30},
         (40, 60, 0, 0, 20, 30)),
    ],
}  # fmt: skip
ALL_CASES = [
    (format, usage, buckets) for format in CASES for usage, buckets in CASES[format]
]


@pytest.fixture
def load_price(db):
    """Set the prices of a model from a time on, as the owner does."""

    def load_price(model="m-1", since="2020-01-01", prices=PRICES):
        with db.transaction():
            db.execute("set local role convo_owner")
            db.execute(
                "insert into convo.model_price values (%s, %s, %s, %s, %s, %s, %s, %s)",
                (model, since, *prices),
            )

    return load_price


@pytest.fixture
def spend(ann, db, conversation_id):
    """Complete a request with a usage; return what was recorded."""
    ann.say(conversation_id, 1)

    def spend(format, usage, model="m-1"):
        request = ann.row(
            "prepare_request",
            conversation_id=conversation_id,
            format=format,
            model=model,
        )
        member = "usageMetadata" if format == "gemini" else "usage"
        if not isinstance(usage, str):
            usage = json.dumps(usage)
        response = json.dumps(ANSWERS[format])[:-1] + f', "{member}": {usage}}}'
        ann.rows(
            "complete_request", request_id=request["request_id"], response=response
        )
        with db.cursor(row_factory=psycopg.rows.dict_row) as cursor:
            return cursor.execute(
                "select *, raw::text as raw_text from convo.usage"
                " where request_id = %s",
                (request["request_id"],),
            ).fetchone()

    return spend


def bill(buckets, prices=PRICES):
    """Add up a bill: tokens times the price of a million of them."""
    return sum(
        (Decimal(tokens) * price / 1_000_000)
        for tokens, price in zip(buckets, prices, strict=True)
    )


@pytest.mark.parametrize(("format", "usage", "buckets"), ALL_CASES)
def test_buckets_are_disjoint_and_cost_what_the_bill_says(
    spend, load_price, format, usage, buckets
):
    load_price()
    row = spend(format, usage)
    assert tuple(row[name] for name in BUCKETS) == buckets
    assert row["cost"] == bill(buckets)


def test_the_row_says_whose_it_is_and_keeps_the_usage(spend, conversation_id):
    row = spend("openai", '{ "prompt_tokens":1.0,  "note": "\\u0000" }')
    assert row["raw_text"] == '{ "prompt_tokens":1.0,  "note": "\\u0000" }'
    assert (row["tenant_id"], row["user_id"]) == ("acme", "ann")
    assert row["conversation_id"] == conversation_id
    assert (row["format"], row["model"], row["is_failed"]) == ("openai", "m-1", False)


def test_a_usage_over_16_kib_counts_but_is_not_kept(spend):
    row = spend("openai", {"prompt_tokens": 1, "note": "x" * 20_000})
    assert (row["input_tokens"], row["raw"]) == (1, None)


@pytest.mark.parametrize("size", [16_383, 16_384, 16_385])
def test_a_usage_of_about_16_kib_loses_no_answer(spend, size):
    text = json.dumps({"prompt_tokens": 1, "note": ""})
    text = text[:-2] + "x" * (size - len(text)) + text[-2:]
    row = spend("openai", text)
    assert row["input_tokens"] == 1
    assert row["raw_text"] == (text if size <= 16_384 else None)


@pytest.mark.parametrize("count", ["1e999999", "-1e999999"])
def test_a_number_that_is_out_of_range_counts_nothing(
    ann, service, conversation_id, count
):
    ann.say(conversation_id, 1)
    request = ann.row("prepare_request", conversation_id=conversation_id,
                      format="openai", model="m-1")  # fmt: skip
    ann.value("fail_request", request_id=request["request_id"], error="sesame",
              usage=f'{{"prompt_tokens": {count}}}')  # fmt: skip
    row = service.conn.execute("select input_tokens, raw::text from convo.usage")
    assert row.fetchone() == (0, f'{{"prompt_tokens": {count}}}')


@pytest.mark.parametrize("model", ["", "x" * 300, None, 7])
def test_an_odd_name_of_an_inner_model_loses_no_answer(spend, db, model):
    inner = {"type": "compaction", "model": model, "input_tokens": 2}
    spend("anthropic", {"input_tokens": 1, "iterations": [inner]})
    rows = db.execute("select input_tokens from convo.usage order by 1").fetchall()
    assert rows == [(1,), (2,)]


@pytest.mark.parametrize("usage", ["null", "[]", "1", '"sesame"'])
def test_without_a_usage_nothing_is_recorded(spend, usage):
    assert spend("openai", usage) is None


def test_an_empty_name_of_the_model_loses_nothing(ann, db, conversation_id):
    ann.say(conversation_id, 1)
    request = ann.row(
        "prepare_request", conversation_id=conversation_id, format="openai", model="m-1"
    )
    response = ANSWERS["openai"] | {"model": "", "usage": {"prompt_tokens": 7}}
    ann.row(
        "complete_request",
        request_id=request["request_id"],
        response=json.dumps(response),
    )
    assert db.execute("select input_tokens from convo.usage").fetchone() == (7,)


# What a provider may tell, by format, and the parts of it.
SHAPES = {
    "openai": {
        "prompt_tokens": (), "completion_tokens": (), "total_tokens": (),
        "prompt_tokens_details": ("cached_tokens", "cache_write_tokens"),
        "completion_tokens_details": ("reasoning_tokens",),
    },
    "openai_responses": {
        "input_tokens": (), "output_tokens": (), "total_tokens": (),
        "input_tokens_details": ("cached_tokens", "cache_write_tokens"),
        "output_tokens_details": ("reasoning_tokens",),
    },
    "anthropic": {
        "input_tokens": (), "cache_read_input_tokens": (),
        "cache_creation_input_tokens": (), "output_tokens": (),
        "cache_creation": ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"),
        "output_tokens_details": ("thinking_tokens",),
    },
    "gemini": {
        "promptTokenCount": (), "cachedContentTokenCount": (),
        "toolUsePromptTokenCount": (), "candidatesTokenCount": (),
        "thoughtsTokenCount": (), "totalTokenCount": (),
    },
}  # fmt: skip
# What the provider counts in all, each token once.
TOTALS = {
    "openai": lambda n: max(
        n("prompt_tokens") + n("completion_tokens"), n("total_tokens")
    ),
    "openai_responses": lambda n: max(
        n("input_tokens") + n("output_tokens"), n("total_tokens")
    ),
    "anthropic": lambda n: (
        n("input_tokens")
        + n("cache_read_input_tokens")
        + max(
            n("cache_creation_input_tokens"),
            n("cache_creation", "ephemeral_5m_input_tokens")
            + n("cache_creation", "ephemeral_1h_input_tokens"),
        )
        + n("output_tokens")
    ),
    "gemini": lambda n: (
        n("promptTokenCount")
        + n("toolUsePromptTokenCount")
        + n("candidatesTokenCount")
        + n("thoughtsTokenCount")
    ),
}
JSON = st.integers(-5, 10**16) | st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
USAGES = st.sampled_from(list(SHAPES)).flatmap(
    lambda format: st.tuples(
        st.just(format),
        st.fixed_dictionaries(
            {},
            optional={
                name: JSON | st.dictionaries(st.sampled_from(parts), JSON)
                if parts
                else JSON
                for name, parts in SHAPES[format].items()
            },
        ),
    )
)


@settings(max_examples=300, deadline=None)
@given(drawn=USAGES)
def test_whatever_a_usage_says_each_token_is_in_one_bucket(buckets_of, drawn):
    format, usage = drawn

    def number(name, part=None):
        value = usage.get(name)
        if part is not None:
            value = value.get(part) if isinstance(value, dict) else None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return int(value) if is_number and 0 <= value <= 10**12 else 0

    buckets = buckets_of(format, usage)
    assert min(buckets) >= 0
    assert sum(buckets) == TOTALS[format](number)


@pytest.fixture(scope="module")
def buckets_of(pg_template, make_database):
    """The normaliser, which is immutable and reads nothing."""
    with psycopg.connect(make_database(pg_template.template_dbname)) as conn:

        def buckets_of(format, usage):
            return conn.execute(
                "select (convo._usage_of(%s, convo._readable(%s))).*",
                (format, json.dumps(usage)),
            ).fetchone()

        yield buckets_of


def test_calls_of_other_models_within_a_call_are_priced_apart(spend, load_price, db):
    load_price()
    load_price("m-2", prices=[7, 0, 0, 0, 0, 0])
    inner = [
        {"type": "message", "input_tokens": 1000},
        {"type": "advisor_message", "model": "m-2", "input_tokens": 1000},
        {"type": "compaction", "input_tokens": 2000, "model": ""},
        {"type": "fallback_message", "model": "m-2", "input_tokens": 1000},
        {"no type": 1},
        3,
    ]
    spend("anthropic", {"input_tokens": 1000, "iterations": inner})
    rows = db.execute(
        "select model, input_tokens, cost from convo.usage order by 1, 2"
    ).fetchall()
    assert rows == [
        ("m-1", 1000, Decimal("0.003")),
        ("m-1", 2000, Decimal("0.006")),
        ("m-2", 1000, Decimal("0.007")),
    ]


BILL = """
    insert into convo.usage
    select (json_populate_record(u, %s)).* from convo.usage as u
"""


@pytest.mark.parametrize(
    "forged",
    [
        {"cost": 9e99},
        {"cost": "NaN"},
        {"cost": -1},
        {"created_at": "infinity"},
        {"input_tokens": 2**60},
    ],
)
def test_no_row_can_spoil_the_sums(ann, spend, forged):
    spend("openai", {"prompt_tokens": 1})
    row = {"usage_id": str(uuid4()), **forged}
    with pytest.raises(psycopg.errors.CheckViolation):
        ann.conn.execute(BILL, (json.dumps(row),))


@pytest.mark.parametrize("member", ["request_id", "conversation_id", "user_id"])
def test_nobody_bills_what_was_not_their_request(ann, spend, member):
    spend("openai", {"prompt_tokens": 1})
    row = {"usage_id": str(uuid4()), member: str(uuid4())}
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ann.conn.execute(BILL, (json.dumps(row),))


# Prices


def test_without_a_price_there_is_no_cost(spend, service):
    assert spend("openai", {"prompt_tokens": 1})["cost"] is None
    row = service.conn.execute(
        "select cost, calls, unpriced_calls from convo.usage_by_tenant"
    ).fetchone()
    assert row == (None, 1, 1)


def test_a_price_of_nothing_is_a_cost_of_nothing(spend, load_price):
    load_price(prices=[0] * 6)
    assert spend("openai", {"prompt_tokens": 1})["cost"] == 0


@pytest.mark.parametrize(
    "model",
    ["gpt-x", "gpt-x-2026-08-06", "gpt-x-20260806", "gpt-x-08-06", "gpt-x-latest"],
)
def test_a_dated_name_has_the_price_of_the_name(spend, load_price, model):
    load_price("gpt-x")
    assert spend("openai", {"prompt_tokens": 1}, model)["cost"] == bill(
        (1, 0, 0, 0, 0, 0)
    )


@pytest.mark.parametrize("model", ["gpt-x-mini", "gpt", "gpt-x-1", "xgpt-x", "GPT-X"])
def test_another_model_does_not(spend, load_price, model):
    load_price("gpt-x")
    assert spend("openai", {"prompt_tokens": 1}, model)["cost"] is None


def test_a_price_of_the_dated_name_comes_first(spend, load_price):
    load_price("gpt-x", since="2026-01-01")
    load_price("gpt-x-2024-08-06", prices=[7, 0, 0, 0, 0, 0])
    assert spend("openai", {"prompt_tokens": 10**6}, "gpt-x-2024-08-06")["cost"] == 7


def test_the_newest_price_that_has_begun_counts(spend, load_price):
    now = datetime.now(UTC)
    for days, price in ((-2, 1), (-1, 2), (1, 3)):
        load_price(since=now + timedelta(days=days), prices=[price] * 6)
    assert spend("openai", {"prompt_tokens": 10**6})["cost"] == 2


def test_a_price_that_comes_later_changes_no_cost(spend, load_price, db):
    before = spend("openai", {"prompt_tokens": 1})
    load_price()
    assert before["cost"] is None
    assert db.execute("select cost from convo.usage").fetchone() == (None,)
    spend("openai", {"prompt_tokens": 1})
    assert db.execute("select count(cost) from convo.usage").fetchone() == (1,)


@pytest.mark.parametrize("price", ["NaN", "Infinity", "-1"])
def test_a_price_is_a_number(load_price, price):
    with pytest.raises(psycopg.errors.CheckViolation):
        load_price(prices=[*PRICES[:5], Decimal(price)])


@pytest.mark.parametrize("login", ["test_app", "test_service", "test_reader"])
def test_no_tenants_login_writes_prices(as_role, load_price, login):
    load_price()
    conn = as_role(login, "acme", "ann").conn
    assert conn.execute("select count(*) from convo.model_price").fetchone() == (1,)
    for statement in (
        "update convo.model_price set input_price = 0",
        "delete from convo.model_price",
        "insert into convo.model_price select * from convo.model_price",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(statement)


def test_a_bill_cannot_be_changed(spend, as_role):
    spend("openai", {"prompt_tokens": 1})
    for login in ("test_app", "test_service"):
        conn = as_role(login, "acme", "ann").conn
        for statement in ("update convo.usage set cost = 0", "delete from convo.usage"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(statement)


# Views


@pytest.fixture
def month(spend, ann, load_price):
    """Two calls of a model with a price, one failed, and one of a model without."""
    load_price()
    spend("openai", {"prompt_tokens": 10, "completion_tokens": 4})
    spend("anthropic", {"input_tokens": 1, "cache_creation_input_tokens": 2})
    row = spend("openai", {"prompt_tokens": 5}, "m-2")
    request = ann.row(
        "prepare_request",
        conversation_id=row["conversation_id"],
        format="openai",
        model="m-1",
    )
    ann.value(
        "fail_request",
        request_id=request["request_id"],
        error="sesame",
        usage='{"prompt_tokens": 7}',
    )
    return row


SUMS = (4, 1, 23, 0, 2, 4, 0, bill((18, 0, 2, 0, 4, 0)), 1)


@pytest.mark.parametrize(
    ("view", "keys"),
    [
        ("conversation", lambda row: ("acme", row["conversation_id"], "ann")),
        ("user", lambda row: ("acme", "ann")),
        ("tenant", lambda row: ("acme",)),
        ("day", lambda row: ("acme", row["created_at"].astimezone(UTC).date())),
    ],
)
@pytest.mark.parametrize("login", ["test_service", "test_reader"])
def test_a_view_adds_up(as_role, month, view, keys, login):
    conn = as_role(login, "acme").conn
    rows = conn.execute(f"select * from convo.usage_by_{view}").fetchall()
    assert rows == [keys(month) + SUMS]


def test_the_view_of_models_has_a_row_for_each(service, month):
    rows = service.conn.execute(
        "select model, calls, cost, unpriced_calls from convo.usage_by_model order by 1"
    ).fetchall()
    assert rows == [("m-1", 3, SUMS[7], 0), ("m-2", 1, None, 1)]


@pytest.mark.parametrize("view", ["conversation", "user", "tenant", "model", "day"])
def test_another_tenant_sees_nothing_in_a_view(hostile_service, month, view):
    query = f"select count(*) from convo.usage_by_{view}"
    assert hostile_service.conn.execute(query).fetchone() == (0,)


def test_a_user_sees_their_own_usage_only(ann, ben, month):
    count = "select count(*) from convo.usage"
    assert ann.conn.execute(count).fetchone() == (4,)
    assert ben.conn.execute(count).fetchone() == (0,)


def test_the_bill_outlives_the_conversation(ann, service, month, conversation_id):
    ann.value("delete_conversation", conversation_id=conversation_id)
    rows = service.conn.execute("select * from convo.usage_by_tenant").fetchall()
    assert rows == [("acme", *SUMS)]
