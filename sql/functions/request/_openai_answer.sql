-- _openai_answer: what a response of the OpenAI chat completions format says.
-- A call that was cut off, so that its arguments aren't JSON, is left out.
-- in: the response or its message, with escapes hidden and readable
create function convo._openai_answer(hidden json, readable jsonb)
returns convo._answer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    choice constant jsonb := _openai_answer.readable #> '{choices,0}';
    last_call constant jsonb := choice #> '{message,tool_calls,-1}';
    message json := coalesce(
        _openai_answer.hidden #> '{choices,0,message}', _openai_answer.hidden
    );
    calls text;
    answer convo._answer;
begin
    answer.finish_reason := choice ->> 'finish_reason';
    answer.is_truncated := choice is not null and coalesce(
        answer.finish_reason in ('length', 'content_filter'), true
    );
    if answer.is_truncated
        and last_call is not null
        and not convo._is_json(last_call #>> '{function,arguments}')
    then
        calls := convo._without_last(message -> 'tool_calls');
        message := case
            when calls = '[]' then convo._json_without(message, array['tool_calls'])
            else convo._json_set(message, 'tool_calls', calls)
        end;
    end if;
    answer.messages := json_build_array(message);
    answer.model := _openai_answer.readable ->> 'model';
    answer.usage := _openai_answer.hidden -> 'usage';
    return answer;
end
$$;

comment on function convo._openai_answer(json, jsonb) is
'What a response of the OpenAI chat completions format says.';
revoke execute on function convo._openai_answer(json, jsonb) from public;
grant execute on function convo._openai_answer(json, jsonb) to convo_app, convo_service;
