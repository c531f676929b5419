-- _summary_end: the first message that no summary may cover.
-- The newest user message, or where there is none the newest message: a context without
-- either would be empty.
create function convo._summary_end(conversation convo.conversation) returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return coalesce(convo._newest_user_seq(_summary_end.conversation), (
        select m.group_seq
        from convo.message as m
        where m.tenant_id = (_summary_end.conversation).tenant_id
            and m.conversation_id = (_summary_end.conversation).conversation_id
            and m.deleted_at is null
            and m.role <> 'system'
        order by m.group_seq desc
        limit 1
    ));
end
$$;

comment on function convo._summary_end(convo.conversation) is
'The first message that no summary may cover.';
revoke execute on function convo._summary_end(convo.conversation) from public;
grant execute on function convo._summary_end(convo.conversation)
to convo_app, convo_service, convo_reader;
