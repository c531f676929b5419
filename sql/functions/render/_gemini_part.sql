-- _gemini_part: a part of the Gemini format.
create function convo._gemini_part(block convo._render_block) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    part constant jsonb := (_gemini_part.block).content;
    call constant jsonb := (_gemini_part.block).call;
begin
    return case (_gemini_part.block).content ->> 'kind'
        when 'text' then format('{"text":%s}', part -> 'text')
        when 'call' then format(
            '{"functionCall":{"name":%s,"args":%s}%s}',
            part -> 'name', convo._arguments_object(part),
            -- Newer models want a signature at the first call of a step; this one
            -- says that another model made the call.
            case when (_gemini_part.block).call_number = 1 then
                ',"thoughtSignature":"skip_thought_signature_validator"'
            end
        )
        when 'result' then json_build_object('functionResponse', json_strip_nulls(
            json_build_object(
                'id', nullif((_gemini_part.block).call_id, call ->> 'name'),
                'name', call ->> 'name',
                'response', json_build_object(
                    case
                        when part -> 'is_error' = 'true' then 'error' else 'output'
                    end,
                    convo._result_text(part)
                )
            )
        ))::text
        else json_strip_nulls(json_build_object(
            case when part ? 'data' then 'inlineData' else 'fileData' end,
            json_build_object(
                'mimeType', part ->> 'media_type', 'data', part ->> 'data',
                'fileUri', part ->> 'url'
            )
        ))::text
    end;
end
$$;

comment on function convo._gemini_part(convo._render_block) is
'A part of the Gemini format.';
revoke execute on function convo._gemini_part(convo._render_block) from public;
grant execute on function convo._gemini_part(convo._render_block)
to convo_app, convo_service, convo_reader;
