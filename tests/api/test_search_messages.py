"""Full text search: what is found, in which order, and what is shown of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LEFT, RIGHT = "\u27e6", "\u27e7"

# What each query has to find first among all of these.
MESSAGES = {
    "chinese": "我昨天买了一台新的机器学习工作站，花了两万元。",
    "traditional": "請問台北車站附近有沒有好吃的牛肉麵？",
    "japanese": "明日の会議は午後三時から東京タワーで行います。",
    "korean": "내일 서울에서 회의가 있습니다.",
    "thai": "พรุ่งนี้ฉันจะไปหาหมอที่โรงพยาบาลกรุงเทพ",
    "indonesian": "Kami mempertanggungjawabkan pembelajaran anak-anak di sekolah.",
    "dutch": "De verzekeringsmaatschappij heeft mijn polis opgezegd.",
    "german": "Meine Krankenversicherungskarte fehlt beim Zahnarzttermin.",
    "code": "def get_user_by_id(key): return fetchUserRecord(key)",
    "url": "See https://docs.example.com/api/v2/search?id=42 for details.",
    "mixed": "Please 帮我 fix the Kubernetes 部署 error",
    "accents": "I like the café in Zürich 🎉",
    "arabic": "قرأت الكتاب في المكتبة أمس",
    "hindi": "कल मैं अपने डॉक्टर से मिलने अस्पताल जाऊँगा।",
    "russian": "Мои друзья приехали в Москву на выходные.",
    "greek": "Η πτήση για την Αθήνα καθυστέρησε.",
    "number": "The error code was E1234-77, order 20240017.",
    "cat": "猫が好きです",
}
QUERIES = [
    ("机器学习", "chinese"),
    ("工作站多少钱", "chinese"),
    ("牛肉麵", "traditional"),
    ("東京タワー", "japanese"),
    ("会議は何時ですか", "japanese"),
    ("서울 회의", "korean"),
    ("โรงพยาบาล", "thai"),
    ("ไปหาหมอ", "thai"),
    ("pembelajaran", "indonesian"),
    ("belajar di sekolah", "indonesian"),
    ("tanggungjawab", "indonesian"),
    ("verzekering", "dutch"),
    ("maatschappij", "dutch"),
    ("Versicherung", "german"),
    ("Zahnarzt", "german"),
    ("Termin", "german"),
    ("krankenversicherungen", "german"),
    ("get_user_by_id", "code"),
    ("fetchUserRecord", "code"),
    ("fetch user record", "code"),
    ("userrecord", "code"),
    ("docs.example.com/api", "url"),
    ("https://docs.example.com/api/v2/search?id=42", "url"),
    ("kubernetes 部署", "mixed"),
    ("部署", "mixed"),
    ("KUBERNETES", "mixed"),
    ("zurich cafe", "accents"),
    ("\uff43\uff41\uff46\uff45\u0301", "accents"),  # in full width, accent apart
    ("🎉", "accents"),
    ("كتاب", "arabic"),
    ("والكتاب", "arabic"),
    ("मुझे डॉक्टर", "hindi"),
    ("друг из Москвы", "russian"),
    ("МОСКВА", "russian"),
    ("Αθηνα", "greek"),
    ("E1234-77", "number"),
    ("20240017", "number"),
    ("猫", "cat"),
    ("What did I say about the polis of the verzekeringsmaatschappij?", "dutch"),
]


def search(caller, query, conversation_id=None, **options):
    return caller.rows(
        "search_messages", query=query, conversation_id=conversation_id, **options
    )


def told(caller, conversation_id, *contents, role="user"):
    for content in contents:
        caller.row(
            "append_message",
            conversation_id=conversation_id,
            role=role,
            content=content,
        )


def seqs(rows):
    return [row["seq"] for row in rows]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
@pytest.mark.parametrize("scope", ["one conversation", "all"])
def test_the_right_message_comes_first(query, expected, scope, ann, conversation_id):
    told(ann, conversation_id, *MESSAGES.values())
    found = search(ann, query, conversation_id if scope != "all" else None)
    assert found[0]["seq"] == list(MESSAGES).index(expected) + 1


def test_a_row_says_where_and_what(ann, conversation_id):
    told(ann, conversation_id, "I keep three hamsters")
    told(ann, conversation_id, "How nice!", role="assistant")
    (message, _) = ann.live(conversation_id)
    found = search(ann, "hamster")[0]
    assert found.pop("score") > 0
    assert found == {
        "conversation_id": conversation_id,
        "seq": 1,
        "role": "user",
        "snippet": f"I keep three {LEFT}hamsters{RIGHT}",
        "created_at": message["created_at"],
    }


def test_a_rare_word_counts_more_than_a_common_one(ann, conversation_id):
    told(ann, conversation_id, *["the weather is fine today"] * 5)
    told(ann, conversation_id, "my hamster sleeps", "the weather was fine")
    assert search(ann, "weather hamster", conversation_id)[0]["seq"] == 6


def test_among_equal_words_the_shorter_message_comes_first(ann, conversation_id):
    told(ann, conversation_id, "hamster " + "and a lot of other words here " * 20)
    told(ann, conversation_id, "hi", "my hamster sleeps")
    assert search(ann, "hamster", conversation_id)[0]["seq"] == 3


def test_a_user_message_comes_before_an_equal_one_of_the_assistant(
    ann, conversation_id
):
    told(ann, conversation_id, "a hamster sleeps", role="assistant")
    told(ann, conversation_id, "nothing", "a hamster sleeps")
    assert search(ann, "hamster", conversation_id)[0]["seq"] == 3


def test_the_turn_before_helps_a_short_answer(ann, conversation_id):
    told(ann, conversation_id, "nothing here", "Is your hamster ill?")
    told(ann, conversation_id, "yes, since Monday", role="assistant")
    told(ann, conversation_id, "quite another subject")
    assert seqs(search(ann, "hamster", conversation_id)) == [2, 3]


def test_one_conversation_is_searched_alone(ann, conversation_id):
    other = ann.create()
    for one in (conversation_id, other):
        told(ann, one, "my hamster sleeps")
    assert [r["conversation_id"] for r in search(ann, "hamster", other)] == [other]
    assert len(search(ann, "hamster")) == 2


@pytest.mark.parametrize(("page_size", "rows"), [(0, 0), (1, 1), (5000, 3)])
def test_page_size(page_size, rows, ann, conversation_id):
    told(ann, conversation_id, *["a hamster"] * 3)
    assert len(search(ann, "hamster", page_size=page_size)) == rows


@pytest.mark.parametrize("page_size", [None, -1])
def test_a_bad_page_size_is_refused(page_size, ann, fails):
    with fails("22023", argument="page_size"):
        search(ann, "hamster", page_size=page_size)


@pytest.mark.parametrize(
    "query", [None, "", " \n\t", "'\"\\", "& | ! <-> ( ) : *", "..."]
)
def test_a_query_without_words_finds_nothing(query, ann, conversation_id):
    told(ann, conversation_id, "' \" \\ & | ! <-> ( ) : * ...", "a hamster")
    assert search(ann, query, conversation_id) == []


# --- what is gone isn't found, and counts nowhere ------------------------------------


@pytest.fixture
def scores(ann):
    """A conversation and what a search in it gives, to compare with later."""

    def scores(conversation_id, query="hamster weather"):
        return [
            (row["seq"], row["score"]) for row in search(ann, query, conversation_id)
        ]

    return scores


def test_a_deleted_message_is_as_if_it_never_was(ann, scores, conversation_id):
    told(ann, conversation_id, "my hamster sleeps", "fine weather")
    before = scores(conversation_id)
    told(ann, conversation_id, "hamster and weather", "weather")
    assert scores(conversation_id) != before
    for seq in (3, 4):
        ann.row("delete_message", conversation_id=conversation_id, seq=seq)
    assert scores(conversation_id) == before


def test_a_restored_message_is_found_again(ann, scores, conversation_id):
    told(ann, conversation_id, "my hamster sleeps", "fine weather")
    before = scores(conversation_id)
    ann.row("delete_message", conversation_id=conversation_id, seq=1)
    assert seqs(search(ann, "hamster", conversation_id)) == []
    ann.row("restore_message", conversation_id=conversation_id, seq=1)
    assert scores(conversation_id) == before


def test_a_cleared_tail_is_not_found(ann, conversation_id):
    told(ann, conversation_id, "one hamster", "two", "three hamsters")
    ann.value("delete_messages", conversation_id=conversation_id, from_seq=2)
    assert seqs(search(ann, "hamster", conversation_id)) == [1]


def test_edited_away_text_is_not_found(ann, conversation_id):
    told(ann, conversation_id, "my hamster sleeps")
    ann.row(
        "edit_message", conversation_id=conversation_id, seq=1, content="my cat sleeps"
    )
    assert search(ann, "hamster", conversation_id) == []
    assert seqs(search(ann, "cat", conversation_id)) == [1]


def test_an_edited_message_scores_as_if_it_were_new(ann, scores, conversation_id):
    told(ann, conversation_id, "my hamster sleeps", "fine weather")
    before = scores(conversation_id)
    for text in ("other words, weather weather", "my hamster sleeps"):
        ann.row("edit_message", conversation_id=conversation_id, seq=1, content=text)
    assert scores(conversation_id) == before


def test_a_fork_is_searched_as_its_source(ann, scores, conversation_id):
    told(ann, conversation_id, "my hamster sleeps", "gone hamster", "fine weather")
    ann.row("delete_message", conversation_id=conversation_id, seq=2)
    fork = ann.value("fork_conversation", conversation_id=conversation_id)
    assert scores(fork) == scores(conversation_id)


def test_a_fork_knows_only_what_it_copied(ann, conversation_id):
    told(ann, conversation_id, "my hamster sleeps", "another hamster")
    fork = ann.value(
        "fork_conversation", conversation_id=conversation_id, through_seq=1
    )
    assert seqs(search(ann, "hamster", fork)) == [1]


def test_a_transferred_conversation_is_found_by_its_new_owner(
    ann, ben, service, conversation_id
):
    told(ann, conversation_id, "my hamster sleeps")
    service.row(
        "transfer_conversation", conversation_id=conversation_id, to_user_id="ben"
    )
    assert search(ann, "hamster") == []
    assert seqs(search(ben, "hamster")) == [1]


def test_a_deleted_conversation_is_not_found(ann, conversation_id):
    told(ann, conversation_id, "my hamster sleeps")
    ann.value("delete_conversation", conversation_id=conversation_id)
    assert search(ann, "hamster") == []


def test_messages_from_before_there_was_search_are_found(
    ann, db, scores, conversation_id
):
    told(ann, conversation_id, "my hamster sleeps", "fine weather", "...")
    before = scores(conversation_id)
    db.execute("update convo.message set words = null, words_norm = null")
    assert scores(conversation_id) == before


def test_messages_in_a_provider_format_are_found(ann, conversation_id):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ann.append(
        conversation_id,
        [
            {"role": "user", "content": [{"type": "text", "text": "my hamster"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "a hamster result"},
        ],
    )
    found = search(ann, "hamster", conversation_id)
    assert {(row["seq"], row["role"]) for row in found} >= {(1, "user"), (3, "tool")}


# --- whose messages ------------------------------------------------------------------


def test_others_find_and_count_nothing_of_it(ann, outsider, conversation_id):
    if outsider.conn.info.user == "test_app":
        told(outsider, outsider.create(), "a cat")
    before = search(outsider, "cat hamster")
    told(ann, conversation_id, "my hamster sleeps", "a cat", "a cat")
    assert search(outsider, "cat hamster") == before
    assert search(outsider, "hamster", conversation_id) == []


def test_service_and_reader_search_the_tenant(ann, ben, service, reader, hostile):
    for who in (ann, ben, hostile):
        told(who, who.create(), "my hamster sleeps")
    for who in (service, reader):
        assert len(search(who, "hamster")) == 2


def test_without_a_context_it_says_so(unknown, fails):
    with fails("PC030"):
        search(unknown, "hamster")


# --- snippets ------------------------------------------------------------------------


def test_a_snippet_is_cut_around_the_hit(ann, conversation_id):
    told(
        ann, conversation_id, "before it " * 100 + "my hamster sleeps" + " after" * 100
    )
    snippet = search(ann, "hamster", conversation_id)[0]["snippet"]
    assert f"{LEFT}hamster{RIGHT}" in snippet
    assert snippet.startswith("...before it") or snippet.startswith("...it before")
    assert snippet.endswith("after...")
    assert len(snippet) <= 260


def test_a_snippet_without_spaces_is_cut_between_characters(ann, conversation_id):
    told(
        ann, conversation_id, "今天天气很好" * 100 + "我的仓鼠在睡觉" + "明天下雨" * 100
    )
    snippet = search(ann, "仓鼠", conversation_id)[0]["snippet"]
    assert f"{LEFT}仓鼠{RIGHT}" in snippet
    assert snippet.startswith("...") and snippet.endswith("...")


def test_a_short_text_is_its_own_snippet(ann, conversation_id):
    told(ann, conversation_id, "Hamsters, hamster!")
    assert search(ann, "hamster", conversation_id)[0]["snippet"] == (
        f"{LEFT}Hamsters{RIGHT}, {LEFT}hamster{RIGHT}!"
    )


# --- any text ------------------------------------------------------------------------

# Everything that PostgreSQL's text holds, and more of what means something somewhere.
texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80
) | st.text(
    "ab'\"\\&|!<->():* %_[]{}^$.?+#\n猫犬กخ\u0301\u200d🎉é\u0640\u2028", max_size=40
)
some = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@some
@given(query=texts)
def test_any_text_is_a_query(query, ann, conversation_id):
    if not ann.live(conversation_id):
        told(ann, conversation_id, *MESSAGES.values())
    for row in search(ann, query, conversation_id):
        assert row["score"] > 0


@some
@given(content=texts)
def test_any_text_is_stored_and_found_by_itself(content, ann, conversation_id):
    ann.value("delete_messages", conversation_id=conversation_id)
    told(ann, conversation_id, content)
    (message,) = ann.live(conversation_id)
    found = search(ann, content, conversation_id)
    assert seqs(found) in ([], [message["seq"]])
    if any("a" <= letter <= "z" or letter in "猫犬ก" for letter in content):
        (row,) = found
        assert row["snippet"].replace(LEFT, "").replace(RIGHT, "") in (
            content.replace(LEFT, "").replace(RIGHT, ""),
        )


LARGE = {
    "words": " ".join(f"word{number}" for number in range(500_000)),
    "no space": "x" * 5_000_000,
    "chinese": "".join(chr(0x4E00 + number % 20_000) for number in range(1_600_000)),
    "long words": " ".join(
        "".join(chr(0x10400 + (number * 7 + place) % 77) for place in range(40))
        for number in range(20_000)
    ),
    "rare characters": "".join(
        chr(0x20000 + number % 42_000) for number in range(1_200_000)
    ),
    "arabic": " ".join(
        "".join(chr(0x0627 + (number * 5 + place * 3) % 30) for place in range(60))
        for number in range(20_000)
    ),
    "one that grows": "\ufdfa" * 1_000_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_a_message_of_5_mb_is_stored_and_its_beginning_found(
    name, ann, conversation_id
):
    told(ann, conversation_id, "something else", LARGE[name])
    beginning = LARGE[name][:30]
    assert search(ann, beginning, conversation_id)[0]["seq"] == 2


@pytest.mark.parametrize("name", LARGE)
def test_a_query_of_5_mb_is_bounded(name, ann, conversation_id):
    told(ann, conversation_id, LARGE[name][:200])
    ann.conn.execute("set statement_timeout = '10s'")
    assert seqs(search(ann, LARGE[name], conversation_id)) == [1]


def test_a_large_batch_is_searchable(ann, conversation_id):
    batch = [{"role": "user", "content": f"message {n}"} for n in range(300)]
    ann.append(
        conversation_id, json.dumps([*batch, {"role": "user", "content": "hamster"}])
    )
    assert search(ann, "hamster", conversation_id)[0]["seq"] == 301
