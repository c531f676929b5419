-- _given_up_seq: calls before this message are no longer expected to be answered.
-- A call waits for its result until ten user messages came after it. Without an end, one
-- that never gets any would keep its conversation from being summarised for ever.
create function convo._given_up_seq(conversation convo.conversation) returns integer
language sql stable
return coalesce(
    (array(
        select m.seq
        from convo.message as m
        where m.tenant_id = (_given_up_seq.conversation).tenant_id
            and m.conversation_id = (_given_up_seq.conversation).conversation_id
            and m.role = 'user'
            and m.deleted_at is null
            and not m.is_empty
        order by m.seq desc
        limit 10
    ))[10],
    0
);

comment on function convo._given_up_seq(convo.conversation) is
'Calls before this message are no longer expected to be answered; 0: none.';
revoke execute on function convo._given_up_seq(convo.conversation) from public;
grant execute on function convo._given_up_seq(convo.conversation)
to convo_app, convo_service, convo_reader;
