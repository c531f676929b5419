-- _request_body: the bytes of a request, made of what it refers to.
-- Both prepare_request and replay_request make them here, so that they are the same.
-- errors: PC060 names what is gone
create function convo._request_body(request convo.request) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    frame convo.request_frame;
    parts text[];
    parameters text;
    tools text;
    context text;
begin
    select f.* into frame
    from convo.request_frame as f
    where f.tenant_id = (_request_body.request).tenant_id
        and f.conversation_id = (_request_body.request).conversation_id
        and f.frame_id = (_request_body.request).frame_id;
    select
        array_agg(t.part),
        min(t.content) filter (where t.part = 'parameters'),
        min(t.content) filter (where t.part = 'tools')
    into parts, parameters, tools
    from convo._request_texts(_request_body.request) as t;
    if not coalesce(parts, '{}') @> frame.parts then
        perform convo._fail('PC060', jsonb_build_object(
            'request_id', (_request_body.request).request_id,
            'texts', array(
                select p.part
                from unnest(frame.parts) as p (part)
                where array_position(parts, p.part) is null
                order by p.part
            )
        ));
    end if;

    context := convo._render(
        frame.renderer, frame.format,
        convo._request_items(_request_body.request, frame)
    );
    return '{' || concat_ws(
        ',',
        '"model":' || case when frame.format <> 'gemini' then
                to_json(frame.model)::text
        end,
        parameters,
        '"tools":' || tools,
        case frame.format
            when 'openai' then '"messages":' || context
            when 'openai_responses' then '"input":' || context
            else substr(context, 2, length(context) - 2)
        end
    ) || '}';
end
$$;

comment on function convo._request_body(convo.request) is
'The bytes of a request, made of what it refers to.';
revoke execute on function convo._request_body(convo.request) from public;
grant execute on function convo._request_body(convo.request)
to convo_app, convo_service, convo_reader;
