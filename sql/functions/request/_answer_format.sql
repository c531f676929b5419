-- _answer_format: which format a provider's response is of, as far as it can be told.
-- in: a response or its message, cleaned by _readable
-- out: null where it may be of several
create function convo._answer_format(response jsonb) returns text
language sql immutable parallel safe
begin atomic
    select case
        when jsonb_typeof(_answer_format.response) = 'array'
            or _answer_format.response ? 'output'
            then 'openai_responses'
        when _answer_format.response ?| array['choices', 'tool_calls', 'refusal']
            then 'openai'
        when _answer_format.response
            ?| array['candidates', 'promptFeedback', 'prompt_feedback', 'parts']
            then 'gemini'
        when _answer_format.response ? 'stop_reason'
            or jsonb_path_exists(
                _answer_format.response,
                '$.content[*].type
                    ? (@ == "tool_use" || @ == "thinking" || @ == "redacted_thinking")'
            )
            then 'anthropic'
        when _answer_format.response ? 'status'
            or _answer_format.response ->> 'type' <> 'message'
            then 'openai_responses'
    end;
end;

comment on function convo._answer_format(jsonb) is
'Which format a provider''s response is of, as far as it can be told.';
revoke execute on function convo._answer_format(jsonb) from public;
grant execute on function convo._answer_format(jsonb) to convo_app, convo_service;
