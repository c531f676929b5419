-- 0005_search: full text search, and the functions of the vector track.
-- phase: expand
-- locks: ACCESS EXCLUSIVE on convo.message, while it is read once
-- migrate:up

set local lock_timeout = '5s';
set local convo.migration = '0005_search';
set local standard_conforming_strings = on;

-- Outside a transaction the line above had no effect. Then the guard below fails, and
-- nothing after it may change anything, even where a client goes on after an error.
do $guard$
begin
    if current_setting('convo.migration', true) is distinct from '0005_search' then
        set default_transaction_read_only = on;
    end if;
end
$guard$;

do $guard$
declare
    caller constant text := current_setting('role');
    ledger_owner name;
    newest integer := 0;
    is_applied boolean := false;
begin
    if current_setting('convo.migration', true) is distinct from '0005_search' then
        raise exception using
            errcode = 'PC092',
            message = 'migration not in one transaction',
            detail = '{"version": 5}',
            hint = 'Connect again and run psql with -1, or use pgconvo migrate.';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('pgconvo migration', 0));

    -- Only its owner and the groups may read the ledger, so look as the owner.
    select pg_get_userbyid(c.relowner) into ledger_owner
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
    where n.nspname = 'convo' and c.relname = 'schema_migration';
    if ledger_owner is not null then
        if not pg_has_role(current_user, ledger_owner, 'member') then
            raise insufficient_privilege using
                message = 'only a member of the owner may migrate',
                detail = json_build_object('owner', ledger_owner)::text,
                hint = 'Connect as the role that installed the schema.';
        end if;
        perform set_config('role', ledger_owner, true);
        select
            coalesce(max(m.version), 0),
            coalesce(bool_or(m.version = 5), false)
        into newest, is_applied
        from convo.schema_migration as m
        where m.track = 'core';
        perform set_config('role', caller, true);
    end if;

    if is_applied then
        raise exception using
            errcode = 'PC090',
            message = 'migration applied already',
            detail = json_build_object('version', 5, 'newest', newest)::text,
            hint = 'Leave this file out.';
    elsif newest <> 5 - 1 then
        raise exception using
            errcode = 'PC091',
            message = 'migration out of order',
            detail = json_build_object('version', 5, 'newest', newest)::text,
            hint = 'Apply the file that follows the newest one first.';
    end if;
end
$guard$;

set local role convo_owner;

-- >>> sql/types/search_record.sql
-- search_record: a message that a search found.
create type convo.search_record as (
    conversation_id uuid,
    seq integer,
    role text,
    snippet text,
    score real,
    created_at timestamptz(3)
);
comment on type convo.search_record is
'A message that a search found, with the part of it that fits the query best.';
-- <<< sql/types/search_record.sql

-- >>> sql/functions/identity/_fail.sql
-- _fail: raises one of the toolkit's errors, so that each has one wording.
-- in: the SQLSTATE, and ids and numbers for DETAIL, never content
-- errors: always
create or replace function convo._fail(code text, detail jsonb) returns void
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message text;
    hint text;
begin
    select e.message, e.hint into message, hint
    from (values
        ('PC001', 'conversation not found',
            'Check the id, and that the context names the tenant and user who own it.'),
        ('PC002', 'message not found',
            'Check seq with list_messages.'),
        ('PC003', 'request not found',
            'Check the id, and that the context names the tenant and user who own it.'),
        ('PC010', 'changed by somebody else',
            'Read the current state, then try again with the current value.'),
        ('PC011', 'idempotency key or request id used for other content',
            'Use a new key for each append, and prepare a request for each answer.'),
        ('PC012', 'conversation was deleted',
            'Create a new conversation; an id is never used again.'),
        ('PC013', 'conversation id is taken',
            'Leave conversation_id out and let the database make one.'),
        ('PC020', 'what must be kept does not fit the budget',
            'Raise the budget, or append a user message if there is none.'),
        ('PC030', 'no tenant or user set',
            'Call set_context in the same transaction.'),
        ('PC031', 'context token not valid',
            'Mint a new one with a key that is valid now.'),
        ('PC040', 'conversation is on legal hold',
            'Ask for release_conversation, then try again.'),
        ('PC050', 'message not valid in its format',
            'Send the message as the provider documents it.'),
        ('PC060', 'request can not be replayed exactly any more',
            'Look in DETAIL for what was erased since; nothing brings it back.'),
        ('0A000', 'not available without the vector track',
            'Install pgvector, then run pgconvo migrate --track vector.'),
        ('22023', 'invalid argument',
            'See the function''s comment for the values it takes.'),
        ('42501', 'not allowed',
            'Use a role that may do this.')
    ) as e (code, message, hint)
    where e.code = _fail.code;

    raise exception using
        errcode = _fail.code, message = message, detail = _fail.detail::text, hint = hint;
end
$$;

comment on function convo._fail(text, jsonb) is
'Raises the error of a code with constant MESSAGE and HINT.';
revoke execute on function convo._fail(text, jsonb) from public;
grant execute on function convo._fail(text, jsonb)
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
-- <<< sql/functions/identity/_fail.sql

-- === sql/tables/message.sql e421bde0506f18f0
alter table convo.message
add column words tsvector,
add column words_norm real,
-- squawk-ignore constraint-missing-not-valid
add constraint message_words_check check (pg_column_size(words) <= 2097152);
comment on column convo.message.words is
'The words of its text, for search; null: made when they are searched.';
comment on column convo.message.words_norm is
'What its score is divided by in a search.';
-- <<< sql/tables/message.sql

-- === sql/policies/message.sql 7e2965e9f56415e8
grant update (words, words_norm) on convo.message to convo_app, convo_service;
-- <<< sql/policies/message.sql

-- >>> sql/functions/search/_search_text.sql
-- _search_text: a text as search compares it.
-- Lower case, compatibility forms and accents folded (NFKC), the humps of camelCase
-- words apart beside the word itself. At most 32,768 characters.
create or replace function convo._search_text(content text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    folded text := left(_search_text.content, 32768);
begin
    if folded ~ '[a-z][A-Z]' then
        folded := concat_ws(
            ' ', folded, (
                select string_agg(
                    regexp_replace(h.hump[1], '([a-z])([A-Z])', e'\\1 \\2', 'g'), ' '
                )
                from regexp_matches(
                    folded, '[A-Za-z0-9]*[a-z][A-Z][A-Za-z0-9]*', 'g'
                ) as h (hump)
            )
        );
    end if;
    folded := lower(folded);
    if octet_length(folded) > length(folded) then
        -- Accents, Arabic vowel signs and the marks that choose a picture's style.
        folded := normalize(regexp_replace(
            normalize(folded, nfkd),
            e'[\\u0300-\\u036f\\u0640\\u064b-\\u0655\\u0670\\u200d\\ufe00-\\ufe0f]+', '', 'g'
        ), nfkc);
    end if;
    return left(folded, 32768);
end
$$;

comment on function convo._search_text(text) is
'A text as search compares it: lower case, accents and compatibility forms folded.';
revoke execute on function convo._search_text(text) from public;
grant execute on function convo._search_text(text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/_search_text.sql

-- >>> sql/functions/search/_search_tokens.sql
-- _search_tokens: the words of a text, and the pieces of what has no word boundaries.
-- Scripts that are written without spaces are cut into overlapping pieces: pairs of
-- characters for Chinese, Japanese and pictures, triples for Thai and its neighbours; the
-- end of a run leaves shorter pieces, so each character begins one. Where other words
-- grow on to a word it is cut too: Korean into pairs, Arabic into fours (marked by
-- U+0640, which _search_text takes out of texts) beside the word without its article.
-- out: words and pieces in order, repeats too, and empty strings between
create or replace function convo._search_tokens(
    content text, out words text[], out pieces text[]
)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    folded text := convo._search_text(_search_tokens.content);
    pairs constant text := e'\\u2190-\\u2bff\\u3005-\\u3007\\u3021-\\u3029\\u3031-\\u3035'
        || e'\\u303b\\u3040-\\u30fa\\u30fc-\\u312f\\u31a0-\\u31bf\\u31f0-\\u31ff'
        || e'\\u3400-\\u4dbf\\u4e00-\\u9fff\\uac00-\\ud7a3\\uf900-\\ufaff'
        || e'\\U0001f000-\\U0001faff\\U00020000-\\U0003ffff';
    triples constant text := e'\\u0e01-\\u0e4e\\u0e50-\\u0e59\\u0e81-\\u0edf\\u0f40-\\u0fbc'
        || e'\\u1000-\\u1049\\u1050-\\u109f\\u1780-\\u17d3\\u17dc-\\u17e9';
    arabic constant text := e'\\u0620-\\u064a\\u066e-\\u06d3\\u06d5-\\u06ff\\u0750-\\u077f'
        || e'\\u08a0-\\u08ff';
    -- ASCII, Latin 1, a few of other scripts, general, CJK, variants, tags
    punctuation constant text := e'\\u0001-/:-`{-\\u00a9\\u00ab-\\u00b4\\u00b6-\\u00b9'
        || e'\\u00bb-\\u00bf\\u00d7\\u00f7\\u037e\\u0387\\u055a-\\u055f\\u0589\\u058a\\u05be'
        || e'\\u05c0\\u05c3\\u05f3\\u05f4\\u0600-\\u061f\\u066a-\\u066d\\u06d4\\u0964\\u0965'
        || e'\\u0e4f\\u0e5a-\\u0e80\\u0f00-\\u0f3f\\u104a-\\u104f\\u1360-\\u1368\\u1680'
        || e'\\u17d4-\\u17db\\u1800-\\u180f\\u2000-\\u2070\\u207a-\\u218f\\u2e00-\\u2e7f'
        || e'\\u3000-\\u3004\\u3008-\\u3020\\u3030\\u303d-\\u303f\\u30fb\\ud800-\\uf8ff'
        || e'\\ufe10-\\ufe6f\\ufeff\\uff00-\\uffff\\U000e0000-\\U0010ffff';
    part text;
begin
    if octet_length(folded) = length(folded) then
        words := string_to_array(regexp_replace(folded, '[^a-z0-9]+', ' ', 'g'), ' ');
        return;
    end if;
    if folded ~ ('[' || pairs || ']') then
        part := regexp_replace(folded, '[^' || pairs || ']+', ' ', 'g');
        pieces := pieces
            || string_to_array(regexp_replace(part, e'(\\S{2})', e'\\1 ', 'g'), ' ');
        part := regexp_replace(part, e'(^| )\\S', ' ', 'g');
        pieces := pieces
            || string_to_array(regexp_replace(part, e'(\\S{2})', e'\\1 ', 'g'), ' ');
    end if;
    if folded ~ ('[' || triples || ']') then
        part := regexp_replace(folded, '[^' || triples || ']+', ' ', 'g');
        for i in 1..3 loop
            pieces := pieces
                || string_to_array(regexp_replace(part, e'(\\S{3})', e'\\1 ', 'g'), ' ');
            part := regexp_replace(part, e'(^| )\\S', ' ', 'g');
        end loop;
    end if;
    if folded ~ ('[' || arabic || ']') then
        part := regexp_replace(folded, '[^' || arabic || ']+', ' ', 'g');
        pieces := pieces || array(
            select chr(1600) || substr(w.word, p.start, 4)
            from unnest(string_to_array(part, ' ')) as w (word)
            cross join lateral generate_series(
                1, greatest(1, least(length(w.word), 64) - 3)
            ) as p (start)
            where w.word <> ''
        );
        -- without article, and what stands before it
        part := regexp_replace(
            part, e'(^| )[\\u0648\\u0641\\u0628\\u0643\\u0644]?\\u0627\\u0644(?=\\S{3})',
            ' ', 'g'
        );
        pieces := pieces || string_to_array(part, ' ');
    end if;
    words := string_to_array(
        regexp_replace(
            folded, '[' || punctuation || pairs || triples || arabic || ']+', ' ', 'g'
        ), ' '
    );
end
$$;

comment on function convo._search_tokens(text) is
'The words of a text, and the pieces of what has no word boundaries.';
revoke execute on function convo._search_tokens(text) from public;
grant execute on function convo._search_tokens(text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/_search_tokens.sql

-- >>> sql/functions/search/_search_words.sql
-- _search_words: a text as a tsvector, and what its scores are divided by.
-- Words and pieces have their positions, which ts_rank counts. Long words have their
-- ends in it too, marked with a hyphen, so that a part of a compound finds it. Never
-- fails: what it takes of a text stays below the limits of a tsvector. Pieces overlap,
-- so there are many of them: they count less in the norm.
create or replace function convo._search_words(content text)
returns table (words tsvector, norm real)
language plpgsql immutable parallel safe rows 1
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    token constant record := convo._search_tokens(_search_words.content);
    pieces tsvector;
    endings text[];
begin
    select
        string_agg(left(w.word, 64) || ':' || w.place, ' ')::tsvector,
        array_agg(w.word) filter (where length(w.word) between 10 and 40)
    into words, endings
    from unnest(token.words) with ordinality as w (word, place)
    where w.word <> '';
    if token.pieces is not null then
        select string_agg(left(p.word, 64) || ':' || p.place, ' ')::tsvector into pieces
        from unnest(token.pieces) with ordinality as p (word, place)
        where p.word <> '';
    end if;
    words := coalesce(words, '');
    pieces := coalesce(pieces, '');
    norm := sqrt(greatest(1, length(words) + length(pieces) ^ 0.7));
    words := words || pieces;
    if endings is not null then
        words := words || array_to_tsvector(array(
            select '-' || substr(w.word, e.start)
            from unnest(endings) as w (word)
            cross join lateral generate_series(4, length(w.word) - 3) as e (start)
            where w.word !~ '[0-9]'
            limit 2000
        ));
    end if;
    return next;
end
$$;

comment on function convo._search_words(text) is
'A text as a tsvector, and what its scores are divided by.';
revoke execute on function convo._search_words(text) from public;
grant execute on function convo._search_words(text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/_search_words.sql

-- >>> sql/functions/search/_search_terms.sql
-- _search_terms: what a query looks for.
-- A word is looked for at several depths, as whatever begins with its first 3, 5 and 7
-- letters and as itself, so that other forms of it count too but less; and in the ends of
-- compounds. What two words of a query share counts once. A pair of characters is looked
-- for, and each character alone. gate is the
-- widest of them: what doesn't match it matches none.
-- in: at most 64 words and 192 pieces of it are looked for
-- out: gate_weight is 0 where the gate is another depth or its whole
create or replace function convo._search_terms(query text)
returns table (
    term integer, gate tsquery, gate_weight real, five tsquery, seven tsquery,
    whole tsquery
)
language sql immutable parallel safe rows 10
begin atomic
    with token as materialized (
        select
            t.words,
            t.pieces
        from convo._search_tokens(_search_terms.query) as t
    ),

    word as (
        select
            left(w.word, 64) as word,
            min(w.place) as place
        from token as t
        cross join lateral unnest(t.words) with ordinality as w (word, place)
        where w.word <> ''
        group by left(w.word, 64)
        order by min(w.place)
        limit 64
    ),

    piece as (
        select
            left(p.word, 64) as word,
            min(p.place) as place
        from token as t
        cross join lateral unnest(t.pieces) with ordinality as p (word, place)
        where p.word <> ''
        group by left(p.word, 64)
        order by min(p.place)
        limit 192
    ),

    term as (
        select
            quote_literal(left(w.word, 3))
            || case when length(w.word) >= 3 then ':*' else '' end as gate,
            case
                when length(w.word) >= 3
                    and row_number() over (partition by left(w.word, 3)) = 1 then 1.0
                else 0
            end as gate_weight,
            case
                when length(w.word) >= 5
                    and row_number() over (partition by left(w.word, 5)) = 1
                    then left(w.word, 5)
            end as five,
            case
                when length(w.word) >= 7
                    and row_number() over (partition by left(w.word, 7)) = 1
                    then left(w.word, 7)
            end as seven,
            w.word as whole
        from word as w
        union all
        select distinct
            quote_literal('-' || left(w.word, 8)) || ':*',
            1,
            null,
            null,
            null
        from word as w
        where length(w.word) >= 4
        union all
        -- a pair (U+2190 and above), and its first character, once
        select
            quote_literal(left(p.word, 1)) || ':*',
            case
                when row_number() over (partition by left(p.word, 1)) = 1 then 0.7
                else 0
            end,
            null,
            null,
            case when length(p.word) = 2 then p.word end
        from piece as p
        where ascii(p.word) >= 8592
        union all
        -- a triple, or an Arabic word or part of one; what is shorter by its beginning
        select
            quote_literal(p.word) || case when length(p.word) < 3 then ':*' else '' end,
            (length(p.word) < 3)::integer,
            null,
            null,
            case when length(p.word) >= 3 then p.word end
        from piece as p
        where ascii(p.word) < 8592
    )

    select
        row_number() over ()::integer as term,
        t.gate::tsquery as gate,
        t.gate_weight::real as gate_weight,
        (quote_literal(t.five) || ':*')::tsquery as five,
        (quote_literal(t.seven) || ':*')::tsquery as seven,
        quote_literal(t.whole)::tsquery as whole
    from term as t;
end;

comment on function convo._search_terms(text) is
'What a query looks for: its words at several depths, and pieces.';
revoke execute on function convo._search_terms(text) from public;
grant execute on function convo._search_terms(text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/_search_terms.sql

-- >>> sql/functions/search/_search_candidates.sql
-- _search_candidates: the messages that fit a query best, without their text.
-- The score of a message is (own + 0.2 * least(1, 15 / norm^2) * before) * 1.5 for a
-- user's, else * 1, where own and before are sums over the terms found in it and in the
-- message before it: ln(1 + messages / messages with the term) ^ 1.1 * times / norm. So
-- a message counts with the turn before it, the shorter the more. times is 1 for a word
-- that is there once and at most 1.42, for the beginnings of words at most 1.25.
-- The fences (a limit the planner can't see through) make it read each conversation once
-- by the primary key, and its words out of line once, not once a term.
-- in: conversation_id null: every conversation that the caller may see
-- errors: PC030, 22023; over 1,000 is 1,000
create or replace function convo._search_candidates(
    query text, conversation_id uuid, page_size integer
) returns table (conversation_id uuid, seq integer, score real)
language sql stable rows 20
begin atomic
    with scope as materialized (
        select
            c.tenant_id,
            c.conversation_id,
            c.message_count
        from convo.conversation as c
        where c.tenant_id = (select convo._require_tenant())
            and c.conversation_id = _search_candidates.conversation_id
        union all
        select
            c.tenant_id,
            c.conversation_id,
            c.message_count
        from convo.conversation as c
        where c.tenant_id = (select convo._require_tenant())
            and _search_candidates.conversation_id is null
    ),

    term as materialized (
        select t.* from convo._search_terms(_search_candidates.query) as t
    ),

    any_term as materialized (
        select string_agg(t.gate::text, ' | ')::tsquery as gate from term as t
    ),

    -- A row a message and term found in it; one with nulls for a message without any.
    hit as materialized (
        select
            c.conversation_id,
            m.seq,
            m.norm,
            m.role_weight,
            h.*
        from scope as c
        cross join
            lateral (
                select
                    s.seq,
                    case when s.role = 'user' then 1.5 else 1 end as role_weight,
                    w.words,
                    w.norm
                from convo.message as s
                cross join any_term as g
                cross join
                    lateral (
                        -- setweight gives a copy that is not out of line
                        select
                            case
                                when s.words @@ g.gate then setweight(s.words, 'D')
                            end as words,
                            greatest(1, s.words_norm) as norm
                        where s.words is not null
                        union all
                        select
                            n.words,
                            n.norm
                        from convo._search_words(s.content) as n
                        where s.words is null
                    ) as w
                where s.tenant_id = c.tenant_id
                    and s.conversation_id = c.conversation_id
                    and s.deleted_at is null
                    and s.content is not null
                limit (select 2147483647)
            ) as m
        left join lateral (
            select
                t.term,
                o.one * ts_rank(o.even, m.words, t.gate) as gate,
                o.one * ts_rank(o.even, m.words, t.five) as five,
                o.one * ts_rank(o.even, m.words, t.seven) as seven,
                o.one * ts_rank(o.even, m.words, t.whole) as whole
            from term as t
            cross join (
                select
                    1.6449341 as one,
                    '{1, 1, 1, 1}'::real[] as even
            ) as o
            where m.words is not null and m.words @@ t.gate
            limit (select 2147483647)
        ) as h on true
    ),

    weight as materialized (
        select
            t.term,
            t.gate_weight * power(ln(1 + n.messages / c.gate), 1.1) as gate,
            coalesce(power(ln(1 + n.messages / nullif(c.five, 0)), 1.1), 0) as five,
            coalesce(power(ln(1 + n.messages / nullif(c.seven, 0)), 1.1), 0) as seven,
            coalesce(power(ln(1 + n.messages / nullif(c.whole, 0)), 1.1), 0) as whole
        from (
            select
                h.term,
                count(*) as gate,
                count(*) filter (where h.five > 0) as five,
                count(*) filter (where h.seven > 0) as seven,
                count(*) filter (where h.whole > 0) as whole
            from hit as h
            group by h.term
        ) as c
        inner join term as t on t.term = c.term
        cross join (
            select sum(o.message_count)::double precision as messages from scope as o
        ) as n
    ),

    own as (
        select
            h.conversation_id,
            h.seq,
            h.norm,
            h.role_weight,
            coalesce(sum(
                w.gate * least(1.25, h.gate)
                + w.five * least(1.25, coalesce(h.five, 0))
                + w.seven * least(1.25, coalesce(h.seven, 0))
                + w.whole * least(1.42, coalesce(h.whole, 0))
            ), 0) / h.norm as score
        from hit as h
        left join weight as w on w.term = h.term
        group by h.conversation_id, h.seq, h.norm, h.role_weight
    ),

    scored as (
        select
            o.conversation_id,
            o.seq,
            o.role_weight * (
                o.score + 0.2 * least(1, 15 / o.norm ^ 2) * coalesce(
                    lag(o.score) over (partition by o.conversation_id order by o.seq), 0
                )
            ) as score
        from own as o
    )

    select
        s.conversation_id,
        s.seq,
        s.score::real as score
    from scored as s
    where s.score > 0
    order by s.score desc, s.conversation_id asc, s.seq desc
    limit convo._size('page_size', _search_candidates.page_size, 1000);
end;

comment on function convo._search_candidates(text, uuid, integer) is
'The messages that fit a query best, best first, without their text.';
revoke execute on function convo._search_candidates(text, uuid, integer) from public;
grant execute on function convo._search_candidates(text, uuid, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/_search_candidates.sql

-- >>> sql/functions/search/_search_patterns.sql
-- _search_patterns: regular expressions for the words of a query, longest first.
-- They hold letters and digits only, so whatever a user types is harmless in them. A
-- word of 5 letters or more stands for all that begin with its first 5, and its first 8
-- for the rest of a compound. The pieces of a run are found one after the other.
-- in: at most 64 words and 192 pieces of it are used
create or replace function convo._search_patterns(query text) returns text[]
language sql immutable parallel safe
begin atomic
    with token as materialized (
        select
            t.words,
            t.pieces
        from convo._search_tokens(_search_patterns.query) as t
    ),

    piece as (
        select
            p.word,
            ascii(p.word) between 1536 and 2303 as is_arabic
        from token as t
        cross join lateral unnest(t.pieces[:192]) as p (word)
        where p.word <> '' and ascii(p.word) <> 1600
    )

    select
        coalesce(
            array_agg(p.pattern order by length(p.pattern) desc, p.pattern asc), '{}'
        )
    from (
        select distinct
            case
                when length(w.word) >= 5
                    then e'(?:\\m' || left(w.word, 5) || '|' || left(w.word, 8)
                        || e')\\w*'
                else '(?<![[:alnum:]])' || w.word || '(?![[:alnum:]])'
            end as pattern
        from token as t
        cross join lateral unnest(t.words[:64]) as w (word)
        where w.word <> ''
        union
        select left(w.word, 8) || e'\\w*'
        from piece as w
        where w.is_arabic and length(w.word) > 1
        union all
        select
            coalesce(
                '(?:' || string_agg(w.word, '|') filter (where length(w.word) > 1)
                || ')+(?:' || string_agg(w.word, '|') || ')?',
                '(?:' || string_agg(w.word, '|') || ')+'
            )
        from piece as w
        where not w.is_arabic
    ) as p
    where p.pattern is not null;
end;

comment on function convo._search_patterns(text) is
'Regular expressions for the words of a query, longest first.';
revoke execute on function convo._search_patterns(text) from public;
grant execute on function convo._search_patterns(text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/_search_patterns.sql

-- >>> sql/functions/search/_search_snippet.sql
-- _search_snippet: the part of a text that fits a query best, its words marked.
-- Up to 240 characters around the first of the query's words that is in it, longest
-- words first; U+27E6 and U+27E7 (white square brackets) stand around each hit, three
-- dots for what was cut off. Cuts fall between words where there are any near.
-- in: the text, and the query's words as _search_tokens gives them
create or replace function convo._search_snippet(content text, words text[]) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    text_read constant text := left(_search_snippet.content, 32768);
    word text;
    place integer := 0;
    start integer := 1;
    snippet text;
begin
    foreach word in array _search_snippet.words loop
        place := regexp_instr(text_read, word, 1, 1, 0, 'i');
        exit when place > 0;
    end loop;
    if place > 80 then
        start := place - 80;
        -- from the next word on, where one begins before the hit
        start := start + coalesce(
            length(substring(substr(text_read, start, 60) from e'^\\S*\\s+')), 0
        );
    end if;
    snippet := substr(text_read, start, 240);
    if start + 240 <= length(_search_snippet.content) then
        snippet := regexp_replace(snippet, e'\\s+\\S{0,60}$', '') || '...';
    end if;
    if start > 1 then
        -- never begins with a mark that belongs to the character before
        snippet := '...' || regexp_replace(
            snippet, e'^[\\u0300-\\u036f\\u200d\\ufe00-\\ufe0f\\U0001f3fb-\\U0001f3ff]+', ''
        );
    end if;
    if place > 0 then
        snippet := regexp_replace(
            snippet, '(' || array_to_string(_search_snippet.words, '|') || ')',
            e'\u27e6\\1\u27e7', 'gi'
        );
    end if;
    return snippet;
end
$$;

comment on function convo._search_snippet(text, text[]) is
'The part of a text that fits a query best, with the query''s words marked.';
revoke execute on function convo._search_snippet(text, text[]) from public;
grant execute on function convo._search_snippet(text, text[])
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/_search_snippet.sql

-- >>> sql/functions/search/search_messages.sql
-- search_messages: finds live messages by what they say, best first.
-- Any text is a query: its words are looked for, and whatever has none of them isn't
-- found. docs/search.md says how they are ranked.
-- in: conversation_id null: every conversation that the caller may see
-- out: the snippet has U+27E6 and U+27E7 around the words that were found
-- errors: PC030, 22023; over 1,000 is 1,000
-- since: 0.1.0
create or replace function convo.search_messages(
    query text,
    conversation_id uuid default null,
    page_size integer default 20
) returns setof convo.search_record
language sql stable rows 20
begin atomic
    with query as materialized (
        select convo._search_patterns(search_messages.query) as patterns
    )

    select
        c.conversation_id,
        c.seq,
        m.role,
        convo._search_snippet(m.content, p.patterns) as snippet,
        c.score,
        m.created_at
    from convo._search_candidates(
            search_messages.query, search_messages.conversation_id,
            search_messages.page_size
        ) as c
    inner join convo.message as m
        on m.tenant_id = (select convo._require_tenant())
            and m.conversation_id = c.conversation_id
            and m.seq = c.seq
    cross join query as p
    order by c.score desc, c.conversation_id asc, c.seq desc;
end;

comment on function convo.search_messages(text, uuid, integer) is
'Finds live messages by what they say, best first, in one conversation or in all that '
'the caller may see. Any text is a query; the words that were found are marked.';
revoke execute on function convo.search_messages(text, uuid, integer) from public;
grant execute on function convo.search_messages(text, uuid, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/search_messages.sql

-- >>> sql/functions/search/_require_vector.sql
-- _require_vector: says that a function needs the vector track, where it is missing.
-- The public functions are the same with and without it. They call what only the track
-- makes, by name: plpgsql looks a name up when a statement runs, so nothing here depends
-- on the track, a later migration of the core can't undo it, and no body is replaced.
-- errors: 0A000
create or replace function convo._require_vector() returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if to_regclass('convo.embedding') is null then
        perform convo._fail('0A000', '{"track": "vector"}');
    end if;
end
$$;

comment on function convo._require_vector() is
'Raises 0A000 where the vector track isn''t installed.';
revoke execute on function convo._require_vector() from public;
grant execute on function convo._require_vector()
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/_require_vector.sql

-- >>> sql/functions/search/store_embedding.sql
-- store_embedding: keeps what a message means to a model, as a vector.
-- The same message and model again replaces it. It is of the revision that was claimed,
-- else of the present one. The first embedding of a model in a tenant says how long all
-- of them are.
-- in: embedding: 1 to 16,000 finite numbers, not all 0
-- errors: 0A000, PC001, PC012, PC002 not there or deleted, 22023
-- since: 0.1.0
create or replace function convo.store_embedding(
    conversation_id uuid, seq integer, model text, embedding real[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform convo._require_tenant();
    perform convo._require_vector();
    perform convo._store_embedding(
        store_embedding.conversation_id, store_embedding.seq, store_embedding.model,
        store_embedding.embedding
    );
end
$$;

comment on function convo.store_embedding(uuid, integer, text, real[]) is
'Keeps what a message means to a model, as a vector, instead of an earlier one of the '
'same model. Needs the vector track.';
revoke execute on function convo.store_embedding(uuid, integer, text, real[])
from public;
grant execute on function convo.store_embedding(uuid, integer, text, real[])
to convo_app, convo_service;
-- <<< sql/functions/search/store_embedding.sql

-- >>> sql/functions/search/claim_embeddings.sql
-- claim_embeddings: messages without an embedding of a model, for one of many workers.
-- A claimed one is given to nobody else for 10 minutes; if it isn't stored by then, it
-- comes back, so what a worker that died had is not lost. System messages and blank ones
-- are left out. Commit before the embeddings are made.
-- in: a name for the model; how many
-- out: conversation by conversation, oldest message first; none: nothing is left to do
-- errors: 0A000, PC030, 22023; over 1,000 is 1,000
-- locks: the messages it gives, until the transaction ends
-- since: 0.1.0
create or replace function convo.claim_embeddings(model text, page_size integer default 100)
returns table (conversation_id uuid, seq integer, revision integer, content text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform convo._require_tenant();
    perform convo._require_vector();
    return query
    select c.conversation_id, c.seq, c.revision, c.content
    from convo._claim_embeddings(
        claim_embeddings.model, claim_embeddings.page_size
    ) as c;
end
$$;

comment on function convo.claim_embeddings(text, integer) is
'Messages of the tenant without an embedding of a model, new and edited ones, for one '
'of many workers. Needs the vector track.';
revoke execute on function convo.claim_embeddings(text, integer) from public;
grant execute on function convo.claim_embeddings(text, integer) to convo_service;
-- <<< sql/functions/search/claim_embeddings.sql

-- >>> sql/functions/search/search_similar.sql
-- search_similar: messages that mean nearly the same as an embedding.
-- Exact within what the caller may see; see docs/embeddings.md for an index.
-- in: conversation_id null: every conversation that the caller may see
-- out: nearest first; score is the cosine, 1 for the same direction
-- errors: 0A000, PC030, 22023 (no such model, another length); over 1,000 is 1,000
-- since: 0.1.0
create or replace function convo.search_similar(
    embedding real[],
    model text,
    conversation_id uuid default null,
    page_size integer default 20
) returns setof convo.search_record
language plpgsql stable rows 20
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
begin
    perform convo._require_vector();
    return query
    select
        f.conversation_id, f.seq, m.role, convo._search_snippet(m.content, '{}'), f.score,
        m.created_at
    from convo._nearest_embeddings(
        search_similar.embedding, search_similar.model, search_similar.conversation_id,
        convo._size('page_size', search_similar.page_size, 1000)
    ) with ordinality as f
    cross join lateral (
        select m.role, m.content, m.created_at
        from convo.message as m
        where m.tenant_id = tenant
            and m.conversation_id = f.conversation_id
            and m.seq = f.seq
        limit 1
    ) as m
    order by f.ordinality;
end
$$;

comment on function convo.search_similar(real[], text, uuid, integer) is
'Messages that mean nearly the same as an embedding, nearest first. score is the '
'cosine, the snippet is the beginning. Needs the vector track.';
revoke execute on function convo.search_similar(real[], text, uuid, integer)
from public;
grant execute on function convo.search_similar(real[], text, uuid, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/search_similar.sql

-- >>> sql/functions/search/_fused_candidates.sql
-- _fused_candidates: the messages that fit a query best, by words and by meaning.
-- Reciprocal rank fusion: a message gets 1 / (10 + its place) from each of the two
-- lists. A message that one list doesn't have gets nothing from it, and where one list
-- is empty the order is the other's. A constant of 60, which is common, can end below
-- the better list, since it hardly tells the first places apart. As in the list by
-- words, the user's own messages come a little before what was answered to them.
-- in: an embedding of the query and its model; null: by words alone
create or replace function convo._fused_candidates(
    query text, embedding real[], model text, within_id uuid, page_size integer
) returns table (conversation_id uuid, seq integer, score real)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    pool constant integer := greatest(200, _fused_candidates.page_size);
begin
    if _fused_candidates.embedding is null then
        return query
        select c.conversation_id, c.seq, c.score
        from convo._search_candidates(
            _fused_candidates.query, _fused_candidates.within_id,
            _fused_candidates.page_size
        ) as c;
        return;
    end if;
    return query
    select f.conversation_id, f.seq, sum(f.score)::real
    from (
        select w.conversation_id, w.seq, 1.0 / (10 + w.ordinality) as score
        from convo._search_candidates(
            _fused_candidates.query, _fused_candidates.within_id, pool
        ) with ordinality as w
        union all
        select
            n.conversation_id,
            n.seq,
            1.0 / (10 + row_number() over (
                order by n.score * case m.role when 'user' then 1.1 else 1 end desc
            ))
        from convo._nearest_embeddings(
            _fused_candidates.embedding, _fused_candidates.model,
            _fused_candidates.within_id, pool
        ) as n
        cross join lateral (
            select l.role
            from convo.message as l
            where l.tenant_id = tenant
                and l.conversation_id = n.conversation_id
                and l.seq = n.seq
            limit 1
        ) as m
    ) as f
    group by f.conversation_id, f.seq
    order by sum(f.score) desc, f.conversation_id, f.seq desc
    limit _fused_candidates.page_size;
end
$$;

comment on function convo._fused_candidates(text, real[], text, uuid, integer) is
'The messages that fit a query best, by words and by meaning, best first.';
revoke execute on function convo._fused_candidates(text, real[], text, uuid, integer)
from public;
grant execute on function convo._fused_candidates(text, real[], text, uuid, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/_fused_candidates.sql

-- >>> sql/functions/search/search_hybrid.sql
-- search_hybrid: messages that fit a query by its words and by its meaning.
-- Where nothing has its words it is search_similar, and where nothing is embedded yet
-- search_messages.
-- in: conversation_id null: every conversation that the caller may see; embedding: of
--     the query, by that model
-- out: best first; the snippet as in search_messages
-- errors: 0A000, PC030, 22023 (no such model, another length); over 1,000 is 1,000
-- since: 0.1.0
create or replace function convo.search_hybrid(
    query text,
    embedding real[],
    model text,
    conversation_id uuid default null,
    page_size integer default 20
) returns setof convo.search_record
language plpgsql stable rows 20
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    patterns constant text[] := convo._search_patterns(search_hybrid.query);
begin
    perform convo._require_vector();
    return query
    select
        f.conversation_id, f.seq, m.role, convo._search_snippet(m.content, patterns),
        f.score, m.created_at
    from convo._fused_candidates(
        search_hybrid.query, coalesce(search_hybrid.embedding, '{}'),
        search_hybrid.model, search_hybrid.conversation_id,
        convo._size('page_size', search_hybrid.page_size, 1000)
    ) with ordinality as f
    cross join lateral (
        select m.role, m.content, m.created_at
        from convo.message as m
        where m.tenant_id = tenant
            and m.conversation_id = f.conversation_id
            and m.seq = f.seq
        limit 1
    ) as m
    order by f.ordinality;
end
$$;

comment on function convo.search_hybrid(text, real[], text, uuid, integer) is
'Messages that fit a query by its words and by its meaning, best first: reciprocal '
'rank fusion of search_messages and search_similar. Needs the vector track.';
revoke execute on function convo.search_hybrid(text, real[], text, uuid, integer)
from public;
grant execute on function convo.search_hybrid(text, real[], text, uuid, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/search_hybrid.sql

-- >>> sql/functions/search/_recall_messages.sql
-- _recall_messages: which earlier messages belong to what the user said last.
-- The ones that fit it best by words, and where it has an embedding by meaning too, each
-- with what was said after and before it.
-- in: the conversation, its policy (recall_limit: how many, neighbours apart), the first
--     group of the window (only what is before it)
-- out: the seqs, best first, each once
create or replace function convo._recall_messages(
    conversation convo.conversation, policy convo.policy_record, before_seq integer
) returns integer[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := (_recall_messages.conversation).tenant_id;
    id constant uuid := (_recall_messages.conversation).conversation_id;
    said record;
    model_name text;
    meaning real[];
begin
    select m.seq, m.content into said
    from convo.message as m
    where m.tenant_id = tenant
        and m.conversation_id = id
        and m.role = 'user'
        and m.deleted_at is null
        and not m.is_empty
    order by m.seq desc
    limit 1;
    if to_regclass('convo.embedding') is not null then
        select e.model, e.embedding into model_name, meaning
        from convo._embedding_of(_recall_messages.conversation, said.seq) as e
        order by e.model
        limit 1;
    end if;
    return array(
        with hit as materialized (
            select f.ordinality as place, f.seq, m.group_seq
            from convo._fused_candidates(
                said.content, meaning, model_name, id, 1000
            ) with ordinality as f
            cross join lateral (
                select l.group_seq
                from convo.message as l
                where l.tenant_id = tenant
                    and l.conversation_id = id
                    and l.seq = f.seq
                    and l.group_seq < _recall_messages.before_seq
                    and l.role <> 'system'
                limit 1
            ) as m
            where f.seq <> said.seq
            order by f.ordinality
            limit (_recall_messages.policy).recall_limit
        )

        select n.seq
        from hit as h
        cross join lateral (
            select h.seq, 0 as place
            union all
            (
                select m.seq, 1
                from convo.message as m
                where m.tenant_id = tenant
                    and m.conversation_id = id
                    and m.seq > h.seq
                    and m.group_seq <> h.group_seq
                    and m.group_seq < _recall_messages.before_seq
                    and m.deleted_at is null
                    and m.role <> 'system'
                order by m.seq
                limit 1
            )
            union all
            (
                select m.seq, 2
                from convo.message as m
                where m.tenant_id = tenant
                    and m.conversation_id = id
                    and m.seq < h.seq
                    and m.group_seq <> h.group_seq
                    and m.deleted_at is null
                    and m.role <> 'system'
                order by m.seq desc
                limit 1
            )
        ) as n
        group by n.seq
        order by min(h.place * 3 + n.place)
    );
end
$$;

comment on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) is
'Which earlier messages belong to what the user said last.';
revoke execute on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) from public;
grant execute on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/_recall_messages.sql

-- >>> sql/functions/conversation/fork_conversation.sql
-- fork_conversation: a new conversation of the same owner that begins as this one does.
-- in: the last message to copy (null: all), a title (null: the same)
-- out: the new id; messages keep seq and time, deleted ones and old revisions come along
-- errors: PC001, PC012, PC002 no such message (0 copies none)
-- since: 0.1.0
create or replace function convo.fork_conversation(
    conversation_id uuid,
    through_seq integer default null,
    title text default null
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant convo.conversation := convo._lock_conversation(
        fork_conversation.conversation_id
    );
    last_copied constant integer := coalesce(
        fork_conversation.through_seq, source.last_seq
    );
    id constant uuid := convo._uuid_v7();
    instant constant timestamptz(3) := greatest(clock_timestamp(), source.updated_at);
    covered_seq integer;
begin
    if last_copied not between 0 and source.last_seq then
        perform convo._fail('PC002', jsonb_build_object(
            'conversation_id', source.conversation_id, 'seq', last_copied,
            'last_seq', source.last_seq
        ));
    end if;
    select coalesce(max(s.through_seq), 0) into covered_seq
    from convo.summary as s
    where s.tenant_id = source.tenant_id
        and s.conversation_id = source.conversation_id
        and s.through_seq <= last_copied;
    insert into convo.conversation (
        tenant_id, conversation_id, user_id, title, system_prompt_sha256,
        retention_class, policy, last_seq, message_count, token_total, body_count,
        body_tokens, summary_through_seq, metadata, created_at, updated_at, forked_from,
        forked_at_seq, edit_count
    )
    select
        source.tenant_id, id, source.user_id,
        nullif(coalesce(fork_conversation.title, source.title), ''),
        source.system_prompt_sha256, source.retention_class, source.policy, last_copied,
        count(*), coalesce(sum(m.tokens), 0),
        count(*) filter (where m.role <> 'system' and m.group_seq > covered_seq),
        coalesce(
            sum(m.tokens) filter (where m.role <> 'system' and m.group_seq > covered_seq),
            0
        ),
        covered_seq, source.metadata, instant, instant, source.conversation_id,
        last_copied, source.edit_count
    from convo.message as m
    where m.tenant_id = source.tenant_id
        and m.conversation_id = source.conversation_id
        and m.seq <= last_copied
        and m.deleted_at is null;

    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, payload, format,
        tokens, is_estimated, is_empty, group_seq, revision, model, call_ids, result_ids,
        metadata, created_at, edited_at, deleted_at, words, words_norm
    )
    select
        m.tenant_id, id, m.seq, m.user_id, m.role, m.content, m.payload, m.format,
        m.tokens, m.is_estimated, m.is_empty, m.group_seq, m.revision, m.model,
        m.call_ids, m.result_ids, m.metadata, m.created_at, m.edited_at, m.deleted_at,
        m.words, m.words_norm
    from convo.message as m
    where m.tenant_id = source.tenant_id
        and m.conversation_id = source.conversation_id
        and m.seq <= last_copied;

    insert into convo.message_revision (
        tenant_id, conversation_id, seq, revision, user_id, content, payload, tokens,
        is_estimated, created_at, edit_number
    )
    select
        r.tenant_id, id, r.seq, r.revision, r.user_id, r.content, r.payload, r.tokens,
        r.is_estimated, r.created_at, r.edit_number
    from convo.message_revision as r
    where r.tenant_id = source.tenant_id
        and r.conversation_id = source.conversation_id
        and r.seq <= last_copied;

    insert into convo.summary (
        tenant_id, conversation_id, through_seq, user_id, content, tokens, model,
        created_at
    )
    select
        s.tenant_id, id, s.through_seq, s.user_id, s.content, s.tokens, s.model,
        s.created_at
    from convo.summary as s
    where s.tenant_id = source.tenant_id
        and s.conversation_id = source.conversation_id
        and s.through_seq <= last_copied;
    update convo.conversation as c
    set stale_seq = convo._stale_seq(id, covered_seq)
    where c.tenant_id = source.tenant_id
        and c.conversation_id = id
        and covered_seq > 0;

    if to_regclass('convo.embedding') is not null then -- the vector track
        insert into convo.embedding (
            tenant_id, conversation_id, seq, model, user_id, revision, dimension,
            embedding
        )
        select
            e.tenant_id, id, e.seq, e.model, e.user_id, e.revision, e.dimension,
            e.embedding
        from convo.embedding as e
        where e.tenant_id = source.tenant_id
            and e.conversation_id = source.conversation_id
            and e.seq <= last_copied
            and e.embedding is not null;
    end if;
    return id;
end
$$;

comment on function convo.fork_conversation(uuid, integer, text) is
'A new conversation of the same owner that begins as this one does, up to a message. '
'Messages keep their seq and time, summaries come along; holds and idempotency keys '
'stay behind.';
revoke execute on function convo.fork_conversation(uuid, integer, text) from public;
grant execute on function convo.fork_conversation(uuid, integer, text)
to convo_app, convo_service;
-- <<< sql/functions/conversation/fork_conversation.sql

-- >>> sql/functions/conversation/transfer_conversation.sql
-- transfer_conversation: gives a conversation to another user of the tenant.
-- errors: PC001, PC012, 22023
-- locks: the conversation row, FOR UPDATE
-- since: 0.1.0
create or replace function convo.transfer_conversation(conversation_id uuid, to_user_id text)
returns convo.conversation_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    old constant convo.conversation := convo._lock_conversation(
        transfer_conversation.conversation_id
    );
    -- the vector track's table: plpgsql looks it up when a statement runs, so what
    -- stands in the branches need not be there
    has_embeddings constant boolean := to_regclass('convo.embedding') is not null;
    prompt text;
    texts bytea[];
    result convo.conversation_record;
begin
    if coalesce(length(transfer_conversation.to_user_id), 0) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'to_user_id', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    -- those who prepare a request hold it FOR KEY SHARE: after them
    perform
    from convo.conversation as c
    where c.tenant_id = old.tenant_id and c.conversation_id = old.conversation_id
    for update;
    texts := array(
        select r.sha256
        from convo.request_prompt as r
        where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id
        union
        select old.system_prompt_sha256
    );
    select r.system_prompt into prompt
    from convo.get_conversation(old.conversation_id) as r;

    set constraints
        convo.message_conversation_fkey,
        convo.message_revision_conversation_fkey,
        convo.summary_conversation_fkey,
        convo.idempotency_key_conversation_fkey,
        convo.request_conversation_fkey,
        convo.request_frame_conversation_fkey,
        convo.request_prompt_conversation_fkey deferred;
    if has_embeddings then
        set constraints convo.embedding_conversation_fkey deferred;
    end if;
    update convo.conversation as c
    set user_id = transfer_conversation.to_user_id,
        system_prompt_sha256 = convo._store_prompt(
            transfer_conversation.to_user_id, prompt
        )
    where c.tenant_id = old.tenant_id and c.conversation_id = old.conversation_id;
    update convo.message as m
    set user_id = transfer_conversation.to_user_id
    where m.tenant_id = old.tenant_id and m.conversation_id = old.conversation_id;
    update convo.message_revision as r
    set user_id = transfer_conversation.to_user_id
    where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id;
    update convo.summary as s
    set user_id = transfer_conversation.to_user_id
    where s.tenant_id = old.tenant_id and s.conversation_id = old.conversation_id;
    update convo.idempotency_key as k
    set user_id = transfer_conversation.to_user_id
    where k.tenant_id = old.tenant_id and k.conversation_id = old.conversation_id;
    update convo.request as r
    set user_id = transfer_conversation.to_user_id
    where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id;
    update convo.request_frame as f
    set user_id = transfer_conversation.to_user_id
    where f.tenant_id = old.tenant_id and f.conversation_id = old.conversation_id;
    perform convo._store_prompt(transfer_conversation.to_user_id, p.content)
    from convo.prompt as p
    where p.tenant_id = old.tenant_id
        and p.user_id = old.user_id
        and p.sha256 = any (texts);
    update convo.request_prompt as r
    set user_id = transfer_conversation.to_user_id
    where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id;
    set constraints
        convo.message_conversation_fkey,
        convo.message_revision_conversation_fkey,
        convo.summary_conversation_fkey,
        convo.idempotency_key_conversation_fkey,
        convo.request_conversation_fkey,
        convo.request_frame_conversation_fkey,
        convo.request_prompt_conversation_fkey immediate;
    if has_embeddings then
        update convo.embedding as e
        set user_id = transfer_conversation.to_user_id
        where e.tenant_id = old.tenant_id and e.conversation_id = old.conversation_id;
        set constraints convo.embedding_conversation_fkey immediate;
    end if;

    perform convo._collect_prompt(old.tenant_id, old.user_id, t.sha256)
    from unnest(texts) as t (sha256);
    perform convo_private._audit('transfer', old.conversation_id, null);
    select r.* into result from convo.get_conversation(old.conversation_id) as r;
    return result;
end
$$;

comment on function convo.transfer_conversation(uuid, text) is
'Gives a conversation, with all that belongs to it, to another user of the tenant.';
revoke execute on function convo.transfer_conversation(uuid, text) from public;
grant execute on function convo.transfer_conversation(uuid, text) to convo_service;
-- <<< sql/functions/conversation/transfer_conversation.sql

-- >>> sql/functions/message/_store_messages.sql
-- _store_messages: adds messages that were read, and moves the counters.
-- in: the messages in their format, the tokens that were given (null: estimated), who
--     wrote the assistant's messages, metadata for each
-- out: the conversation as it is now; the messages are its last ones
-- errors: PC001, PC012, PC010, 23514
-- locks: the conversation row
create or replace function convo._store_messages(
    conversation_id uuid,
    format text,
    parsed convo._parsed_message[],
    tokens integer[],
    model text,
    expected_seq integer,
    metadata jsonb default '{}'
) returns convo.conversation
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    total record;
    conversation convo.conversation;
    first_seq integer;
    groups integer[];
begin
    select
        count(*)::integer as messages,
        coalesce(sum(p.tokens), 0) as tokens,
        count(*) filter (where p.role <> 'system') as body_messages,
        coalesce(sum(p.tokens) filter (where p.role <> 'system'), 0) as body_tokens
    into total
    from unnest(_store_messages.parsed) as p;

    conversation := convo._advance_conversation(
        _store_messages.conversation_id, total.messages, total.messages, total.tokens,
        total.body_messages, total.body_tokens, _store_messages.expected_seq
    );
    first_seq := conversation.last_seq - total.messages + 1;
    groups := convo._group_messages(
        conversation.conversation_id, _store_messages.format, _store_messages.parsed,
        first_seq
    );
    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, payload, format,
        tokens, is_estimated, is_empty, group_seq, model, call_ids, result_ids,
        metadata, created_at, words, words_norm
    )
    select
        conversation.tenant_id, conversation.conversation_id, first_seq + p.n - 1,
        conversation.user_id, p.role, p.content, p.payload, _store_messages.format,
        p.tokens, _store_messages.tokens[p.n] is null, p.is_empty, p.group_seq,
        case when p.role = 'assistant' then nullif(_store_messages.model, '') end,
        p.call_ids, p.result_ids, _store_messages.metadata, conversation.updated_at,
        w.words, w.norm
    from unnest(_store_messages.parsed, groups) with ordinality as p (
        role, content, payload, tokens, is_empty, call_ids, result_ids, group_seq, n
    )
    cross join lateral convo._search_words(p.content) as w;
    if conversation.summary_through_seq >= any (groups) then
        -- a result that joined a call which a summary covers
        perform convo._advance_conversation(
            conversation.conversation_id, 0, 0, 0, -count(*), -sum(p.tokens)
        )
        from unnest(_store_messages.parsed, groups) as p (
            role, content, payload, tokens, is_empty, call_ids, result_ids, group_seq
        )
        where p.group_seq <= conversation.summary_through_seq;
        perform convo._mark_stale(conversation, first_seq + min(p.n)::integer - 1)
        from unnest(groups) with ordinality as p (group_seq, n)
        where p.group_seq <= conversation.summary_through_seq;
    end if;
    return conversation;
end
$$;

comment on function convo._store_messages(
    uuid, text, convo._parsed_message[], integer[], text, integer, jsonb
) is
'Adds messages that were read, and moves the counters.';
revoke execute on function convo._store_messages(
    uuid, text, convo._parsed_message[], integer[], text, integer, jsonb
) from public;
grant execute on function convo._store_messages(
    uuid, text, convo._parsed_message[], integer[], text, integer, jsonb
) to convo_app, convo_service;
-- <<< sql/functions/message/_store_messages.sql

-- >>> sql/functions/message/append_message.sql
-- append_message: adds one plain text message at the end of a conversation.
-- in: role system, user or assistant; tokens null: estimated
-- out: the stored message, or with a key used before the one stored then, as it is now
-- errors: PC001, PC012, PC010 expected_seq, PC011 key, 22023, 23514 too long
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create or replace function convo.append_message(
    conversation_id uuid,
    role text,
    content text,
    tokens integer default null,
    model text default null,
    expected_seq integer default null,
    idempotency_key text default null,
    metadata jsonb default '{}'
) returns convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    token_count constant integer := coalesce(
        append_message.tokens, convo.estimate_tokens(append_message.content)
    );
    hash bytea;
    earlier convo.idempotency_key;
    conversation convo.conversation;
    message convo.message;
begin
    if append_message.role is null
        or append_message.role not in ('system', 'user', 'assistant')
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'role', 'allowed', array['system', 'user', 'assistant'],
            'instead', 'a tool result needs its call: append_messages'
        ));
    elsif append_message.content is null then
        perform convo._fail('22023', '{"argument": "content", "reason": "missing"}');
    elsif append_message.tokens < 0 then
        perform convo._fail('22023', '{"argument": "tokens", "minimum": 0}');
    elsif jsonb_typeof(append_message.metadata) <> 'object' then
        perform convo._fail(
            '22023', '{"argument": "metadata", "reason": "not an object"}'
        );
    end if;
    if append_message.idempotency_key is not null then
        hash := sha256(convert_to(json_build_array(
            'text', append_message.role, append_message.content
        )::text, 'UTF8'));
        earlier := convo._find_append(
            append_message.conversation_id, append_message.idempotency_key, hash
        );
        if earlier.first_seq is not null then
            select m.* into message
            from convo.message as m
            where m.tenant_id = earlier.tenant_id
                and m.conversation_id = earlier.conversation_id
                and m.seq = earlier.first_seq;
            return convo._message_record(message);
        end if;
    end if;

    conversation := convo._advance_conversation(
        append_message.conversation_id, 1, 1, token_count,
        (append_message.role <> 'system')::integer,
        case when append_message.role <> 'system' then token_count else 0 end,
        append_message.expected_seq
    );
    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, tokens, is_estimated,
        is_empty, group_seq, model, metadata, created_at, words, words_norm
    )
    select
        conversation.tenant_id, conversation.conversation_id, conversation.last_seq,
        conversation.user_id, append_message.role, append_message.content, token_count,
        append_message.tokens is null, convo._is_blank(append_message.content),
        conversation.last_seq, nullif(append_message.model, ''),
        coalesce(append_message.metadata, '{}'), conversation.updated_at, w.words,
        w.norm
    from convo._search_words(append_message.content) as w
    returning * into message;
    if hash is not null then
        insert into convo.idempotency_key (
            tenant_id, conversation_id, key, user_id, first_seq, last_seq, sha256,
            created_at
        )
        values (
            conversation.tenant_id, conversation.conversation_id,
            append_message.idempotency_key, conversation.user_id, message.seq,
            message.seq, hash, message.created_at
        );
    end if;
    return convo._message_record(message);
end
$$;

comment on function convo.append_message(
    uuid, text, text, integer, text, integer, text, jsonb
) is
'Adds one plain text message. expected_seq is the last seq the writer saw (PC010 if it '
'is another now). With an idempotency_key a retry stores nothing twice.';
revoke execute on function convo.append_message(
    uuid, text, text, integer, text, integer, text, jsonb
) from public;
grant execute on function convo.append_message(
    uuid, text, text, integer, text, integer, text, jsonb
) to convo_app, convo_service;
-- <<< sql/functions/message/append_message.sql

-- >>> sql/functions/message/last_messages.sql
-- last_messages: the newest N live messages, oldest of them first.
-- out: rows in order of seq; none when the conversation isn't there or the caller's
-- errors: PC030, 22023; over 10,000 is 10,000
-- since: 0.1.0
create or replace function convo.last_messages(conversation_id uuid, message_limit integer)
returns setof convo.message_record
language sql stable rows 20
begin atomic
    select m.*
    from (
        select
            s.seq,
            s.role,
            s.content,
            s.tokens,
            s.is_estimated,
            s.created_at,
            s.revision,
            s.model,
            s.payload,
            s.format,
            s.metadata,
            s.group_seq,
            s.deleted_at
        from convo.message as s
        where s.tenant_id = (select convo._require_tenant())
            and s.conversation_id = last_messages.conversation_id
            and s.deleted_at is null
        order by s.seq desc
        limit convo._size('message_limit', last_messages.message_limit, 10000)
    ) as m
    order by m.seq;
end;

comment on function convo.last_messages(uuid, integer) is
'The newest N live messages of a conversation, oldest of them first.';
revoke execute on function convo.last_messages(uuid, integer) from public;
grant execute on function convo.last_messages(uuid, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/last_messages.sql

-- >>> sql/functions/message/list_messages.sql
-- list_messages: a page of live messages, always oldest first.
-- in: after_seq: the page that follows it; else the page before before_seq; neither: the
--     newest page
-- out: rows in order of seq; none when the conversation isn't there or the caller's
-- errors: PC030, 22023; over 1,000 is 1,000
-- since: 0.1.0
create or replace function convo.list_messages(
    conversation_id uuid,
    before_seq integer default null,
    after_seq integer default null,
    page_size integer default 30
) returns setof convo.message_record
language sql stable rows 30
begin atomic
    select m.*
    from (
        (
            select
                f.seq,
                f.role,
                f.content,
                f.tokens,
                f.is_estimated,
                f.created_at,
                f.revision,
                f.model,
                f.payload,
                f.format,
                f.metadata,
                f.group_seq,
                f.deleted_at
            from convo.message as f
            where f.tenant_id = (select convo._require_tenant())
                and f.conversation_id = list_messages.conversation_id
                and f.deleted_at is null
                and f.seq > list_messages.after_seq
                and f.seq < coalesce(list_messages.before_seq, 2147483647)
            order by f.seq
            limit convo._size('page_size', list_messages.page_size, 1000)
        )
        union all
        (
            select
                b.seq,
                b.role,
                b.content,
                b.tokens,
                b.is_estimated,
                b.created_at,
                b.revision,
                b.model,
                b.payload,
                b.format,
                b.metadata,
                b.group_seq,
                b.deleted_at
            from convo.message as b
            where b.tenant_id = (select convo._require_tenant())
                and b.conversation_id = list_messages.conversation_id
                and b.deleted_at is null
                and list_messages.after_seq is null
                and b.seq < coalesce(list_messages.before_seq, 2147483647)
            order by b.seq desc
            limit convo._size('page_size', list_messages.page_size, 1000)
        )
    ) as m
    order by m.seq;
end;

comment on function convo.list_messages(uuid, integer, integer, integer) is
'A page of live messages, oldest first: the one after after_seq, else the one before '
'before_seq, else the newest.';
revoke execute on function convo.list_messages(uuid, integer, integer, integer)
from public;
grant execute on function convo.list_messages(uuid, integer, integer, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/list_messages.sql

-- >>> sql/functions/message/edit_message.sql
-- edit_message: replaces the text of a message; the old version stays a revision.
-- Calls and media stay as they are. tokens null: estimated anew.
-- errors: PC001, PC012, PC002 not there or deleted, PC010 expected_revision,
--         22023 (also for a message that has no text)
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create or replace function convo.edit_message(
    conversation_id uuid,
    seq integer,
    content text,
    tokens integer default null,
    expected_revision integer default null
) returns convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    conversation constant convo.conversation := convo._lock_conversation(
        edit_message.conversation_id
    );
    old constant convo.message := convo._find_message(conversation, edit_message.seq);
    new_payload json;
    parsed convo._parsed_message;
    token_count integer;
    message convo.message;
begin
    if old.deleted_at is not null then
        perform convo._fail('PC002', jsonb_build_object(
            'conversation_id', old.conversation_id, 'seq', old.seq
        ));
    elsif edit_message.content is null then
        perform convo._fail('22023', '{"argument": "content", "reason": "missing"}');
    elsif edit_message.tokens < 0 then
        perform convo._fail('22023', '{"argument": "tokens", "minimum": 0}');
    elsif old.content is null then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'seq', 'value', old.seq, 'reason', 'the message has no text'
        ));
    elsif edit_message.expected_revision <> old.revision then
        perform convo._fail('PC010', jsonb_build_object(
            'conversation_id', old.conversation_id, 'seq', old.seq,
            'expected_revision', edit_message.expected_revision,
            'revision', old.revision
        ));
    end if;

    new_payload := convo._replace_text(old.format, old.payload, edit_message.content);
    parsed := convo._read_message(old.format, new_payload, 0);
    token_count := coalesce(
        edit_message.tokens, parsed.tokens, convo.estimate_tokens(edit_message.content)
    );
    insert into convo.message_revision (
        tenant_id, conversation_id, seq, revision, user_id, content, payload, tokens,
        is_estimated, created_at, edit_number
    )
    values (
        old.tenant_id, old.conversation_id, old.seq, old.revision, old.user_id,
        old.content, old.payload, old.tokens, old.is_estimated,
        coalesce(old.edited_at, old.created_at), conversation.edit_count + 1
    );
    update convo.conversation as c
    set edit_count = c.edit_count + 1
    where c.tenant_id = old.tenant_id and c.conversation_id = old.conversation_id;
    update convo.message as m
    set content = edit_message.content,
        words = w.words,
        words_norm = w.norm,
        payload = new_payload,
        tokens = token_count,
        is_estimated = edit_message.tokens is null,
        is_empty = coalesce(parsed.is_empty, convo._is_blank(edit_message.content)),
        revision = old.revision + 1,
        edited_at = clock_timestamp()
    from convo._search_words(edit_message.content) as w
    where m.tenant_id = old.tenant_id
        and m.conversation_id = old.conversation_id
        and m.seq = old.seq
    returning m.* into message;
    perform convo._advance_conversation(
        old.conversation_id, 0, 0, token_count - old.tokens, 0,
        case
            when old.role <> 'system'
                and old.group_seq > conversation.summary_through_seq
                then token_count - old.tokens
            else 0
        end
    );
    if old.role <> 'system' and old.group_seq <= conversation.summary_through_seq then
        perform convo._mark_stale(conversation, old.seq);
    end if;
    return convo._message_record(message);
end
$$;

comment on function convo.edit_message(uuid, integer, text, integer, integer) is
'Replaces the text of a message, keeps its calls and media, and keeps the old version '
'as a revision.';
revoke execute on function convo.edit_message(uuid, integer, text, integer, integer)
from public;
grant execute on function convo.edit_message(uuid, integer, text, integer, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/edit_message.sql

reset role;

set local role convo_owner;
insert into convo.schema_migration (track, version, name)
values ('core', 5, '0005_search');
reset role;

-- migrate:down
