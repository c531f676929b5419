-- _embedding_of: the embeddings that are stored of a message as it is now.
create function convo._embedding_of(conversation convo.conversation, seq integer)
returns table (model text, embedding real[])
language sql stable rows 1
begin atomic
    select
        e.model,
        e.embedding::real[]
    from convo.embedding as e
    inner join convo.message as m
        on m.tenant_id = e.tenant_id
            and m.conversation_id = e.conversation_id
            and m.seq = e.seq
            and m.revision = e.revision
    where e.tenant_id = (_embedding_of.conversation).tenant_id
        and e.conversation_id = (_embedding_of.conversation).conversation_id
        and e.seq = _embedding_of.seq
        and e.embedding is not null;
end;

comment on function convo._embedding_of(convo.conversation, integer) is
'The embeddings that are stored of a message as it is now.';
revoke execute on function convo._embedding_of(convo.conversation, integer) from public;
grant execute on function convo._embedding_of(convo.conversation, integer)
to convo_app, convo_service, convo_reader;
