-- _find_message: one message of a conversation that the caller has locked.
-- errors: PC002 no such message
create function convo._find_message(conversation convo.conversation, seq integer)
returns convo.message
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message convo.message;
begin
    select m.* into message
    from convo.message as m
    where m.tenant_id = (_find_message.conversation).tenant_id
        and m.conversation_id = (_find_message.conversation).conversation_id
        and m.seq = _find_message.seq;
    if not found then
        perform convo._fail('PC002', jsonb_build_object(
            'conversation_id', (_find_message.conversation).conversation_id,
            'seq', _find_message.seq
        ));
    end if;
    return message;
end
$$;

comment on function convo._find_message(convo.conversation, integer) is
'One message of a conversation; PC002 if there is none.';
revoke execute on function convo._find_message(convo.conversation, integer) from public;
grant execute on function convo._find_message(convo.conversation, integer)
to convo_app, convo_service;
