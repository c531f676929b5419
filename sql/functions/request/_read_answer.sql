-- _read_answer: what a provider's response says, in its own format.
-- in: the whole response, or the message in it
-- errors: PC050
create function convo._read_answer(format text, response json) returns convo._answer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    readable jsonb;
    source text;
    answers jsonb;
    hidden text[];
    reason text;
    answer convo._answer;
begin
    begin
        readable := convo._readable(_read_answer.response);
    exception when numeric_value_out_of_range then
        perform convo._fail('PC050', '{"reason": "a number out of range"}');
    end;
    source := convo._answer_format(readable);
    answers := coalesce(readable -> 'choices', readable -> 'candidates');
    reason := case
        when readable is null then 'missing'
        when jsonb_typeof(readable) not in ('object', 'array') then 'not an object'
        when readable ->> 'type' = 'error'
            or jsonb_typeof(readable -> 'error') = 'object'
            or readable ->> 'status' in ('failed', 'cancelled')
            then 'an error, not an answer: see fail_request'
        when source <> _read_answer.format then 'a response of another format'
        when jsonb_typeof(readable -> 'output') <> 'array'
            or jsonb_typeof(answers) <> 'array'
            or answers = '[]'
            or readable = '{}'
            or _read_answer.format = 'openai'
            and jsonb_typeof(answers #> '{0,message}') is distinct from 'object'
            and answers is not null
            or source = 'gemini' and answers is null and not readable ? 'parts'
            then 'there is no answer in it'
        when jsonb_array_length(answers) > 1
            then 'it has several answers: give the message to keep'
    end;
    if reason is not null then
        perform convo._fail('PC050', jsonb_strip_nulls(jsonb_build_object(
            'reason', reason, 'expected', _read_answer.format,
            'format', case when source <> _read_answer.format then source end
        )));
    end if;

    hidden := convo._hide_escapes(_read_answer.response::text);
    answer := case _read_answer.format
        when 'openai' then convo._openai_answer(hidden[1]::json, readable)
        when 'openai_responses'
            then convo._openai_responses_answer(hidden[1]::json, readable)
        when 'anthropic' then convo._anthropic_answer(hidden[1]::json, readable)
        else convo._gemini_answer(hidden[1]::json, readable)
    end;
    answer.messages := convo._show_escapes(answer.messages::text, hidden[2:]);
    answer.model := nullif(left(answer.model, 255), '');
    answer.usage := convo._show_escapes(answer.usage::text, hidden[2:]);
    return answer;
end
$$;

comment on function convo._read_answer(text, json) is
'What a provider''s response says, in its own format.';
revoke execute on function convo._read_answer(text, json) from public;
grant execute on function convo._read_answer(text, json) to convo_app, convo_service;
