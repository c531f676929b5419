-- _anthropic_answer: what a response of the Anthropic format says.
-- Of a response only role and content may go back to the provider. A block at the end
-- that was cut off is left out: a call, or thinking without its signature.
-- in: the response or its message, with escapes hidden and readable
create function convo._anthropic_answer(hidden json, readable jsonb)
returns convo._answer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    last_block constant jsonb := _anthropic_answer.readable #> '{content,-1}';
    content text := coalesce((_anthropic_answer.hidden -> 'content')::text, 'null');
    answer convo._answer;
begin
    answer.messages := json_build_array(_anthropic_answer.hidden);
    if not _anthropic_answer.readable ? 'stop_reason' then
        return answer;
    end if;
    answer.finish_reason := _anthropic_answer.readable ->> 'stop_reason';
    answer.is_truncated := coalesce(answer.finish_reason in (
        'max_tokens', 'model_context_window_exceeded', 'refusal'
    ), true);
    if answer.is_truncated and (
        last_block ->> 'type' like '%tool_use'
        or last_block ->> 'type' = 'thinking'
        and coalesce(last_block ->> 'signature', '') = ''
    ) then
        content := convo._without_last(content::json);
    end if;
    answer.messages := json_build_array(
        ('{"role":"assistant","content":' || content || '}')::json
    );
    answer.model := _anthropic_answer.readable ->> 'model';
    answer.usage := _anthropic_answer.hidden -> 'usage';
    return answer;
end
$$;

comment on function convo._anthropic_answer(json, jsonb) is
'What a response of the Anthropic format says.';
revoke execute on function convo._anthropic_answer(json, jsonb) from public;
grant execute on function convo._anthropic_answer(json, jsonb)
to convo_app, convo_service;
