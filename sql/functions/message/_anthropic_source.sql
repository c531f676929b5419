-- _anthropic_source: what an Anthropic image or document says of its data.
-- out: {"media_type", "data"}, {"url"} or {"id"}; {} for sources of another kind
create function convo._anthropic_source(source jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return case
        when _anthropic_source.source ->> 'type' = 'text' then jsonb_build_object(
            'media_type', 'text/plain', 'data', replace(encode(
                convert_to(_anthropic_source.source ->> 'data', 'UTF8'), 'base64'
            ), e'\n', '')
        )
        else jsonb_build_object(
            'media_type', _anthropic_source.source -> 'media_type',
            'data', _anthropic_source.source -> 'data',
            'url', _anthropic_source.source -> 'url',
            'id', _anthropic_source.source -> 'file_id'
        )
    end;
end
$$;

comment on function convo._anthropic_source(jsonb) is
'The data of an image or document of the Anthropic format.';
revoke execute on function convo._anthropic_source(jsonb) from public;
grant execute on function convo._anthropic_source(jsonb)
to convo_app, convo_service, convo_reader;
