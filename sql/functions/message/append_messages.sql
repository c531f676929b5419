-- append_messages: adds messages in a provider's own shape, all or none.
-- in: one message or an array; format: openai (chat), openai_responses (items of input
--     or output), anthropic or gemini, whose system text is a message of role system;
--     tokens for each (null: estimated); model: who wrote the assistant's messages
-- out: the stored messages, or with a key used before the ones stored then, as they are
--      now; [] checks expected_seq, stores nothing and gives no row
-- errors: PC050 not valid in the format (DETAIL: index, reason), PC001, PC012,
--         PC010 expected_seq, PC011 key, 22023, 23514 too long
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.append_messages(
    conversation_id uuid,
    messages json,
    format text default 'openai',
    tokens integer[] default null,
    model text default null,
    expected_seq integer default null,
    idempotency_key text default null
) returns setof convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    parsed convo._parsed_message[];
    total record;
    hash bytea;
    earlier convo.idempotency_key;
    conversation convo.conversation;
    first_seq integer;
    groups integer[];
begin
    -- Everything is read before anything is locked.
    parsed := convo._read_messages(
        append_messages.format, append_messages.messages, append_messages.tokens
    );
    select
        count(*)::integer as messages,
        coalesce(sum(p.tokens), 0) as tokens,
        count(*) filter (where p.role <> 'system') as body_messages,
        coalesce(sum(p.tokens) filter (where p.role <> 'system'), 0) as body_tokens
    into total
    from unnest(parsed) as p;

    if append_messages.idempotency_key is not null then
        hash := sha256(convert_to(json_build_array(
            append_messages.format, append_messages.messages
        )::text, 'UTF8'));
        earlier := convo._find_append(
            append_messages.conversation_id, append_messages.idempotency_key, hash
        );
        if earlier.first_seq is not null then
            return query
            select (convo._message_record(m)).*
            from convo.message as m
            where m.tenant_id = earlier.tenant_id
                and m.conversation_id = earlier.conversation_id
                and m.seq between earlier.first_seq and earlier.last_seq
            order by m.seq;
            return;
        end if;
    end if;

    conversation := convo._advance_conversation(
        append_messages.conversation_id, total.messages, total.messages, total.tokens,
        total.body_messages, total.body_tokens, append_messages.expected_seq
    );
    first_seq := conversation.last_seq - total.messages + 1;
    groups := convo._group_messages(
        conversation.conversation_id, append_messages.format, parsed, first_seq
    );
    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, payload, format,
        tokens, is_estimated, is_empty, group_seq, model, call_ids, result_ids,
        created_at, words, words_norm
    )
    select
        conversation.tenant_id, conversation.conversation_id, first_seq + p.n - 1,
        conversation.user_id, p.role, p.content, p.payload, append_messages.format,
        p.tokens, append_messages.tokens[p.n] is null, p.is_empty, p.group_seq,
        case when p.role = 'assistant' then nullif(append_messages.model, '') end,
        p.call_ids, p.result_ids, conversation.updated_at, w.words, w.norm
    from unnest(parsed, groups) with ordinality as p (
        role, content, payload, tokens, is_empty, call_ids, result_ids, group_seq, n
    )
    cross join lateral convo._search_words(p.content) as w;
    if conversation.summary_through_seq >= any (groups) then
        -- a result that joined a call which a summary covers
        perform convo._advance_conversation(
            conversation.conversation_id, 0, 0, 0, -count(*), -sum(p.tokens)
        )
        from unnest(parsed, groups) as p (
            role, content, payload, tokens, is_empty, call_ids, result_ids, group_seq
        )
        where p.group_seq <= conversation.summary_through_seq;
    end if;
    if hash is not null then
        insert into convo.idempotency_key (
            tenant_id, conversation_id, key, user_id, first_seq, last_seq, sha256,
            created_at
        )
        values (
            conversation.tenant_id, conversation.conversation_id,
            append_messages.idempotency_key, conversation.user_id, first_seq,
            conversation.last_seq, hash, conversation.updated_at
        );
    end if;
    return query
    select (convo._message_record(m)).*
    from convo.message as m
    where m.tenant_id = conversation.tenant_id
        and m.conversation_id = conversation.conversation_id
        and m.seq >= first_seq
    order by m.seq;
end
$$;

comment on function convo.append_messages(
    uuid, json, text, integer[], text, integer, text
) is
'Adds one message or an array of messages in a provider''s own shape, all or none. The '
'JSON is kept byte for byte; tool results join the call that they answer.';
revoke execute on function convo.append_messages(
    uuid, json, text, integer[], text, integer, text
) from public;
grant execute on function convo.append_messages(
    uuid, json, text, integer[], text, integer, text
) to convo_app, convo_service;
