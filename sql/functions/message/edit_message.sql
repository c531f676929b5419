-- edit_message: replaces the text of a message; the old version stays a revision.
-- Calls and media stay as they are. tokens null: estimated anew.
-- errors: PC001, PC012, PC002 not there or deleted, PC010 expected_revision,
--         22023 (also for a message that has no text)
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.edit_message(
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
    else
        perform convo._mark_changed(conversation, old.seq);
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
