-- _request_texts: the shared texts that a request was made with, by part.
create function convo._request_texts(request convo.request)
returns table (part text, content text)
language sql stable rows 4
begin atomic
    select
        r.part,
        p.content
    from convo.request_prompt as r
    inner join convo.prompt as p
        on p.tenant_id = r.tenant_id
            and p.user_id = r.user_id
            and p.sha256 = r.sha256
    where r.tenant_id = (_request_texts.request).tenant_id
        and r.conversation_id = (_request_texts.request).conversation_id
        and r.frame_id = (_request_texts.request).frame_id;
end;

comment on function convo._request_texts(convo.request) is
'The shared texts that a request was made with, by part.';
revoke execute on function convo._request_texts(convo.request) from public;
grant execute on function convo._request_texts(convo.request)
to convo_app, convo_service, convo_reader;
