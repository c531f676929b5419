-- _openai_responses_content: a part as input content of the OpenAI responses format.
create function convo._openai_responses_content(part jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := _openai_responses_content.part;
begin
    return json_strip_nulls(case source ->> 'kind'
        when 'text' then json_build_object(
            'type', 'input_text', 'text', source ->> 'text'
        )
        when 'image' then json_build_object(
            'type', 'input_image',
            'image_url', convo._data_url(source),
            'file_id', source ->> 'id',
            'detail', coalesce(source ->> 'detail', 'auto')
        )
        when 'file' then json_build_object(
            'type', 'input_file',
            'file_id', source ->> 'id',
            'file_url', source ->> 'url',
            'filename', case
                when source ? 'data' then coalesce(source ->> 'name', 'file.pdf')
            end,
            'file_data', case when source ? 'data' then convo._data_url(source) end
        )
    end)::text;
end
$$;

comment on function convo._openai_responses_content(jsonb) is
'A part as input content of the OpenAI responses format.';
revoke execute on function convo._openai_responses_content(jsonb) from public;
grant execute on function convo._openai_responses_content(jsonb)
to convo_app, convo_service, convo_reader;
