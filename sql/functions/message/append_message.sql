-- append_message: adds one plain text message at the end of a conversation.
-- in: role system, user or assistant; tokens null: estimated
-- out: the stored message, or with a key used before the one stored then, as it is now
-- errors: PC001, PC012, PC010 expected_seq, PC011 key, 22023, 23514 too long
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.append_message(
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
