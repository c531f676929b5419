-- _request_record: a request as the functions give it.
create function convo._request_record(
    request convo.request, frame convo.request_frame, body text
) returns convo.request_record
language sql immutable parallel safe
begin atomic
    select
        row(
            (_request_record.request).request_id,
            (_request_record.request).conversation_id,
            (_request_record.frame).format,
            (_request_record.frame).model,
            (_request_record.frame).policy,
            _request_record.body,
            (_request_record.request).body_sha256,
            (_request_record.request).token_count,
            lower((_request_record.request).messages),
            upper((_request_record.request).messages) - 1,
            case
                when (_request_record.request).response_sha256 is not null
                    then 'completed'
                when (_request_record.request).finished_at is not null then 'failed'
                else 'prepared'
            end,
            (_request_record.request).created_at,
            (_request_record.request).finished_at,
            (_request_record.frame).renderer
        )::convo.request_record;
end;

comment on function convo._request_record(
    convo.request, convo.request_frame, text
) is
'A request as the functions give it.';
revoke execute on function convo._request_record(
    convo.request, convo.request_frame, text
) from public;
grant execute on function convo._request_record(
    convo.request, convo.request_frame, text
) to convo_app, convo_service, convo_reader;
