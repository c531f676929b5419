-- _anthropic_content: a text, image or document as a block of the Anthropic format.
create function convo._anthropic_content(part jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := _anthropic_content.part;
begin
    return case source ->> 'kind'
        when 'text' then format('{"type":"text","text":%s}', source -> 'text')
        else json_strip_nulls(json_build_object(
            'type', replace(source ->> 'kind', 'file', 'document'),
            'source', case
                when source ? 'data' then json_build_object(
                    'type', 'base64', 'media_type', source ->> 'media_type',
                    'data', source ->> 'data'
                )
                else json_build_object('type', 'url', 'url', source ->> 'url')
            end,
            'title', source ->> 'name'
        ))::text
    end;
end
$$;

comment on function convo._anthropic_content(jsonb) is
'A text, image or document as a block of the Anthropic format.';
revoke execute on function convo._anthropic_content(jsonb) from public;
grant execute on function convo._anthropic_content(jsonb)
to convo_app, convo_service, convo_reader;
