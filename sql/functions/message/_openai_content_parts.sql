-- _openai_content_parts: the content of a message of either OpenAI format as parts.
-- in: a string, an array of content parts, or null
-- out: an array, see _openai_parts; what isn't valid is a part without a kind or text
create function convo._openai_content_parts(content jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := _openai_content_parts.content;
begin
    if jsonb_typeof(source) = 'string' then
        return jsonb_build_array(jsonb_build_object('kind', 'text', 'text', source));
    elsif jsonb_typeof(source) is distinct from 'array' then
        return '[]';
    end if;
    return (
        select coalesce(jsonb_agg(
            case
                when p.type in ('text', 'input_text', 'output_text', 'refusal')
                    then jsonb_build_object('kind', 'text', 'text', coalesce(
                        p.part -> 'text', p.part -> 'refusal'
                    ))
                when p.type in ('image_url', 'input_image', 'computer_screenshot')
                    then jsonb_strip_nulls(jsonb_build_object(
                        'kind', 'image', 'id', p.part -> 'file_id', 'detail', coalesce(
                            p.part #> '{image_url,detail}', p.part -> 'detail'
                        )
                    ) || convo._url_media(coalesce(
                        p.part #> '{image_url,url}', p.part -> 'image_url'
                    )))
                when p.type in ('file', 'input_file')
                    then jsonb_strip_nulls(jsonb_build_object(
                        'kind', 'file', 'name', f.file -> 'filename',
                        'id', f.file -> 'file_id', 'url', f.file -> 'file_url'
                    ) || case
                        when f.file ->> 'file_data' like 'data:%'
                            then convo._url_media(f.file -> 'file_data')
                        else jsonb_build_object('data', f.file -> 'file_data')
                    end)
                when p.type = 'input_audio' then jsonb_strip_nulls(jsonb_build_object(
                    'kind', 'audio',
                    'media_type', 'audio/' || (p.part #>> '{input_audio,format}'),
                    'data', p.part #> '{input_audio,data}'
                ))
                when p.type is not null then '{"kind": "other"}'
                else '{}'
            end
            order by p.n
        ), '[]')
        from (
            select e.part, e.n, case
                when jsonb_typeof(e.part -> 'type') = 'string' then e.part ->> 'type'
            end as type
            from jsonb_array_elements(source) with ordinality as e (part, n)
        ) as p
        cross join lateral (
            values (coalesce(p.part -> 'file', p.part))
        ) as f (file)
    );
end
$$;

comment on function convo._openai_content_parts(jsonb) is
'The content of a message of either OpenAI format as parts.';
revoke execute on function convo._openai_content_parts(jsonb) from public;
grant execute on function convo._openai_content_parts(jsonb)
to convo_app, convo_service, convo_reader;
