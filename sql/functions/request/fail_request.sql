-- fail_request: records a try that gave no answer; what it cost counts.
-- The request stays open: it may be tried again, fail again, or be completed.
-- in: error: what happened, cut to 2,000 characters; usage: the provider's, if it gave it
-- errors: PC003, PC011 it was completed, 22023
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.fail_request(
    request_id uuid,
    error text,
    usage json default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request constant convo.request := convo._lock_request(fail_request.request_id);
    frame convo.request_frame;
begin
    if fail_request.error is null then
        perform convo._fail('22023', '{"argument": "error", "reason": "missing"}');
    elsif request.response_sha256 is not null then
        perform convo._fail('PC011', jsonb_build_object(
            'request_id', request.request_id,
            'first_seq', request.first_answer_seq, 'last_seq', request.last_answer_seq
        ));
    end if;
    select f.* into frame
    from convo.request_frame as f
    where f.tenant_id = request.tenant_id
        and f.conversation_id = request.conversation_id
        and f.frame_id = request.frame_id;
    perform convo._record_usage(
        request.tenant_id, request.request_id, request.conversation_id,
        request.user_id, frame.format, frame.model, fail_request.usage, true
    );
    update convo.request as r
    set finished_at = clock_timestamp(),
        error = left(fail_request.error, 2000)
    where r.tenant_id = request.tenant_id and r.request_id = request.request_id;
end
$$;

comment on function convo.fail_request(uuid, text, json) is
'Records a try that gave no answer, and what it cost. The request may be tried again.';
revoke execute on function convo.fail_request(uuid, text, json) from public;
grant execute on function convo.fail_request(uuid, text, json)
to convo_app, convo_service;
