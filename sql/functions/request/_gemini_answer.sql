-- _gemini_answer: what a response of the Gemini format says, in camel or snake case.
-- Calls come whole in this format. An answer without content has no parts.
-- in: the response or its content, with escapes hidden and readable
create function convo._gemini_answer(hidden json, readable jsonb)
returns convo._answer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    candidate constant jsonb := _gemini_answer.readable #> '{candidates,0}';
    content json := _gemini_answer.hidden;
    answer convo._answer;
begin
    if candidate is not null then
        content := case jsonb_typeof(candidate -> 'content')
            when 'object' then _gemini_answer.hidden #> '{candidates,0,content}'
            else '{"parts":[]}'
        end;
        if content ->> 'role' is null then
            content := convo._json_set(content, 'role', '"model"');
        end if;
    end if;
    answer.finish_reason := coalesce(
        candidate ->> 'finishReason', candidate ->> 'finish_reason'
    );
    answer.is_truncated := candidate is not null
        and answer.finish_reason is distinct from 'STOP';
    answer.messages := json_build_array(content);
    answer.model := coalesce(
        _gemini_answer.readable ->> 'modelVersion',
        _gemini_answer.readable ->> 'model_version'
    );
    answer.usage := coalesce(
        _gemini_answer.hidden -> 'usageMetadata',
        _gemini_answer.hidden -> 'usage_metadata'
    );
    return answer;
end
$$;

comment on function convo._gemini_answer(json, jsonb) is
'What a response of the Gemini format says.';
revoke execute on function convo._gemini_answer(json, jsonb) from public;
grant execute on function convo._gemini_answer(json, jsonb) to convo_app, convo_service;
