-- _find_append: the append that has used an idempotency key before.
-- Locks the conversation first, so that of two tries at once the second sees the first.
-- out: the row of the key, null if the key is new
-- errors: 22023, PC001, PC012, PC011 used for other content
create function convo._find_append(conversation_id uuid, key text, sha256 bytea)
returns convo.idempotency_key
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    conversation convo.conversation;
    earlier convo.idempotency_key;
begin
    if length(_find_append.key) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'idempotency_key', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    conversation := convo._lock_conversation(_find_append.conversation_id);
    select k.* into earlier
    from convo.idempotency_key as k
    where k.tenant_id = conversation.tenant_id
        and k.conversation_id = conversation.conversation_id
        and k.key = _find_append.key;
    if earlier.sha256 <> _find_append.sha256 then
        perform convo._fail('PC011', jsonb_build_object(
            'conversation_id', conversation.conversation_id,
            'first_seq', earlier.first_seq, 'last_seq', earlier.last_seq
        ));
    end if;
    return earlier;
end
$$;

comment on function convo._find_append(uuid, text, bytea) is
'The append that has used an idempotency key before, or null.';
revoke execute on function convo._find_append(uuid, text, bytea) from public;
grant execute on function convo._find_append(uuid, text, bytea)
to convo_app, convo_service;
