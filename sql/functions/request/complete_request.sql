-- complete_request: stores the answer to a request, and what it cost.
-- The same response again stores nothing: it gives the messages stored before, as they
-- are now. An answer that was cut off keeps what is whole.
-- in: response: the provider's response in the request's format, whole or the message in
--     it (then nothing is known of usage and model); expected_seq: as append_messages
-- out: the messages of the answer; their metadata has finish_reason, and is_truncated
--      where the answer was cut off
-- errors: PC003, PC050 (not a response of that format; DETAIL has the reason),
--         PC011 another response came before, PC010, PC001, PC012
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.complete_request(
    request_id uuid,
    response json,
    expected_seq integer default null
) returns setof convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request constant convo.request := convo._lock_request(complete_request.request_id);
    hash constant bytea := sha256(convert_to(complete_request.response::text, 'UTF8'));
    frame convo.request_frame;
    answer convo._answer;
    parsed convo._parsed_message[];
    conversation convo.conversation;
    first_seq integer := request.first_answer_seq;
    last_seq integer := request.last_answer_seq;
begin
    if request.response_sha256 is null then
        select f.* into frame
        from convo.request_frame as f
        where f.tenant_id = request.tenant_id
            and f.conversation_id = request.conversation_id
            and f.frame_id = request.frame_id;
        answer := convo._read_answer(frame.format, complete_request.response);
        answer.model := coalesce(answer.model, frame.model);
        parsed := convo._read_messages(frame.format, answer.messages, null);
        -- results of the provider's own tools may stand between, not alone
        if (
            select bool_or(p.role in ('system', 'user')) or bool_and(p.role = 'tool')
            from unnest(parsed) as p
        ) then
            perform convo._fail('PC050', jsonb_build_object(
                'reason', 'not a message of the assistant', 'expected', frame.format
            ));
        end if;
        conversation := convo._store_messages(
            request.conversation_id, frame.format, parsed, null, answer.model,
            complete_request.expected_seq, jsonb_strip_nulls(jsonb_build_object(
                'finish_reason', answer.finish_reason,
                'is_truncated', nullif(answer.is_truncated, false)
            ))
        );
        if cardinality(parsed) > 0 then
            last_seq := conversation.last_seq;
            first_seq := last_seq - cardinality(parsed) + 1;
        end if;
        perform convo._record_usage(
            request.tenant_id, request.request_id, request.conversation_id,
            request.user_id, frame.format, answer.model, answer.usage, false
        );
        update convo.request as r
        set finished_at = conversation.updated_at,
            first_answer_seq = first_seq,
            last_answer_seq = last_seq,
            response_sha256 = hash
        where r.tenant_id = request.tenant_id and r.request_id = request.request_id;
    elsif request.response_sha256 is distinct from hash then
        perform convo._fail('PC011', jsonb_build_object(
            'request_id', request.request_id,
            'first_seq', first_seq, 'last_seq', last_seq
        ));
    end if;
    return query
    select (convo._message_record(m)).*
    from convo.message as m
    where m.tenant_id = request.tenant_id
        and m.conversation_id = request.conversation_id
        and m.seq between first_seq and last_seq
    order by m.seq;
end
$$;

comment on function convo.complete_request(uuid, json, integer) is
'Stores the answer to a request, from the provider''s own response, and its usage, all '
'or nothing. The same response again stores nothing twice; another one is PC011.';
revoke execute on function convo.complete_request(uuid, json, integer) from public;
grant execute on function convo.complete_request(uuid, json, integer)
to convo_app, convo_service;
