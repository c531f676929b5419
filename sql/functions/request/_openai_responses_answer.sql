-- _openai_responses_answer: what a response of the OpenAI responses format says.
-- Items that were cut off are left out, but for messages, whose text counts as far as it
-- goes; and so is reasoning at the end that lost what it led to.
-- in: the response or its output, with escapes hidden and readable
create function convo._openai_responses_answer(hidden json, readable jsonb)
returns convo._answer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    status constant text := case
        when _openai_responses_answer.readable ? 'output'
            then coalesce(_openai_responses_answer.readable ->> 'status', 'incomplete')
    end;
    output constant json := case
        when status is not null then _openai_responses_answer.hidden -> 'output'
        when json_typeof(_openai_responses_answer.hidden) = 'array'
            then _openai_responses_answer.hidden
        else json_build_array(_openai_responses_answer.hidden)
    end;
    answer convo._answer;
begin
    answer.finish_reason := coalesce(
        _openai_responses_answer.readable #>> '{incomplete_details,reason}', status
    );
    answer.is_truncated := coalesce(status <> 'completed', false);
    answer.messages := output;
    if answer.is_truncated then
        select coalesce(json_agg(i.item order by i.n), '[]') into answer.messages
        from (
            select
                o.item,
                o.n,
                max(o.n) filter (where o.item ->> 'type' <> 'reasoning') over ()
                as last_n
            from json_array_elements(output) with ordinality as o (item, n)
            where o.item ->> 'type' = 'message'
                or coalesce(o.item ->> 'status', 'completed') = 'completed'
        ) as i
        where i.n <= i.last_n;
    end if;
    answer.model := case
        when status is not null then _openai_responses_answer.readable ->> 'model'
    end;
    answer.usage := case
        when status is not null then _openai_responses_answer.hidden -> 'usage'
    end;
    return answer;
end
$$;

comment on function convo._openai_responses_answer(json, jsonb) is
'What a response of the OpenAI responses format says.';
revoke execute on function convo._openai_responses_answer(json, jsonb) from public;
grant execute on function convo._openai_responses_answer(json, jsonb)
to convo_app, convo_service;
