-- _gemini_response: the result in a Gemini functionResponse.
-- Its text is the response as JSON; or output, result or error where that is a string
-- and all there is. Where calls have no ids, names stand for them.
create function convo._gemini_response(source jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    response constant jsonb := _gemini_response.source -> 'response';
    single jsonb;
begin
    if jsonb_typeof(response) = 'object'
        and '{}' in (response - 'output', response - 'result', response - 'error')
    then
        single := coalesce(
            response -> 'output', response -> 'result', response -> 'error'
        );
    end if;
    return jsonb_build_object(
        'kind', 'result',
        'id', coalesce(
            nullif(_gemini_response.source -> 'id', '""'),
            _gemini_response.source -> 'name'
        ),
        'name', _gemini_response.source -> 'name',
        'parts', jsonb_build_array(jsonb_build_object(
            'kind', 'text', 'text', case
                when jsonb_typeof(single) = 'string' then single #>> '{}'
                when jsonb_typeof(response) = 'object' then response::text
            end
        )) || convo._gemini_parts(_gemini_response.source),
        'is_error', coalesce(response ? 'error', false)
    );
end
$$;

comment on function convo._gemini_response(jsonb) is
'The result in a Gemini functionResponse.';
revoke execute on function convo._gemini_response(jsonb) from public;
grant execute on function convo._gemini_response(jsonb)
to convo_app, convo_service, convo_reader;
