-- _index_messages: makes what search knows of some messages fit what they say now.
-- in: a conversation that is locked, and the seqs
create function convo._index_messages(
    conversation convo.conversation, from_seq integer, through_seq integer
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    delete from convo.message_search as s
    where s.tenant_id = _index_messages.conversation.tenant_id
        and s.conversation_id = _index_messages.conversation.conversation_id
        and s.seq between _index_messages.from_seq and _index_messages.through_seq;
    insert into convo.message_search (
        tenant_id, conversation_id, seq, user_id, is_from_user, norm, words
    )
    select
        m.tenant_id, m.conversation_id, m.seq, m.user_id, m.role = 'user', w.norm,
        w.words
    from convo.message as m
    cross join lateral convo._search_words(m.content) as w
    where m.tenant_id = _index_messages.conversation.tenant_id
        and m.conversation_id = _index_messages.conversation.conversation_id
        and m.seq between _index_messages.from_seq and _index_messages.through_seq
        and m.deleted_at is null;
end
$$;

comment on function convo._index_messages(convo.conversation, integer, integer) is
'Makes what search knows of some messages fit what they say now.';
revoke execute on function convo._index_messages(convo.conversation, integer, integer)
from public;
grant execute on function convo._index_messages(convo.conversation, integer, integer)
to convo_app, convo_service;
