-- _store_messages: adds messages that were read, and moves the counters.
-- in: the messages in their format, the tokens that were given (null: estimated), who
--     wrote the assistant's messages, metadata for each
-- out: the conversation as it is now; the messages are its last ones
-- errors: PC001, PC012, PC010, 23514
-- locks: the conversation row
create function convo._store_messages(
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
