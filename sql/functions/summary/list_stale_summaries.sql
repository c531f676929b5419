-- list_stale_summaries: summaries under which a message changed after they were saved.
-- A change is an edit, a soft deletion, a restored message, or a result that came late.
-- The next summary that is saved is taken to know of it.
-- out: the summary, and the first message that changed; in order of conversation_id
-- errors: PC030, 22023; over 1,000 is 1,000
-- since: 0.1.0
create function convo.list_stale_summaries(page_size integer default 30)
returns table (conversation_id uuid, through_seq integer, changed_seq integer)
language sql stable rows 30
begin atomic
    select
        c.conversation_id,
        c.summary_through_seq,
        c.stale_seq
    from convo.conversation as c
    where c.tenant_id = (select convo._require_tenant()) and c.stale_seq is not null
    order by c.conversation_id
    limit convo._size('page_size', list_stale_summaries.page_size, 1000);
end;

comment on function convo.list_stale_summaries(integer) is
'Summaries in use under which a message was edited, deleted, restored or answered '
'late, with the first such message.';
revoke execute on function convo.list_stale_summaries(integer) from public;
grant execute on function convo.list_stale_summaries(integer)
to convo_app, convo_service, convo_reader;
