-- _openai_content: a part as a content part of an OpenAI chat message.
create function convo._openai_content(part jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := _openai_content.part;
begin
    return json_strip_nulls(case source ->> 'kind'
        when 'text' then json_build_object('type', 'text', 'text', source ->> 'text')
        when 'image' then json_build_object(
            'type', 'image_url', 'image_url', json_build_object(
                'url', convo._data_url(source), 'detail', source ->> 'detail'
            )
        )
        when 'file' then json_build_object('type', 'file', 'file', json_build_object(
            'file_id', source ->> 'id',
            'filename', case
                when not source ? 'id' then coalesce(source ->> 'name', 'file.pdf')
            end,
            'file_data', convo._data_url(source)
        ))
        when 'audio' then json_build_object(
            'type', 'input_audio', 'input_audio', json_build_object(
                'data', source ->> 'data',
                'format', case source ->> 'media_type'
                    when 'audio/wav' then 'wav' else 'mp3'
                end
            )
        )
    end)::text;
end
$$;

comment on function convo._openai_content(jsonb) is
'A part as a content part of an OpenAI chat message.';
revoke execute on function convo._openai_content(jsonb) from public;
grant execute on function convo._openai_content(jsonb)
to convo_app, convo_service, convo_reader;
