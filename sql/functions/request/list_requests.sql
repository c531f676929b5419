-- list_requests: the requests of a conversation, newest first.
-- in: at: only what was prepared at or before that time (null: all)
-- out: without their bodies; none when the conversation isn't there or isn't the caller's
-- errors: PC030, 22023
-- since: 0.1.0
create function convo.list_requests(
    conversation_id uuid,
    at timestamptz default null,
    page_size integer default 30
) returns setof convo.request_record
language sql stable rows 30
begin atomic
    select (convo._request_record(r, f, null)).*
    from convo.request as r
    inner join convo.request_frame as f
        on f.tenant_id = r.tenant_id
            and f.conversation_id = r.conversation_id
            and f.frame_id = r.frame_id
    where r.tenant_id = (select convo._require_tenant())
        and r.conversation_id = list_requests.conversation_id
        and r.created_at <= coalesce(list_requests.at, 'infinity')
    order by r.created_at desc, r.request_id desc
    limit (select convo._size('page_size', list_requests.page_size, 1000));
end;

comment on function convo.list_requests(uuid, timestamptz, integer) is
'The requests of a conversation, newest first, without their bodies; at: what was '
'prepared at or before that time.';
revoke execute on function convo.list_requests(uuid, timestamptz, integer) from public;
grant execute on function convo.list_requests(uuid, timestamptz, integer)
to convo_app, convo_service, convo_reader;
