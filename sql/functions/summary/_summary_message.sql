-- _summary_message: a message as a summary is made from it, the same for all formats.
-- out: {"seq", "role", "content", "calls": [{"name", "arguments"}],
--      "results": [{"name", "content"}]}, without what it lacks; media are short texts
create function convo._summary_message(message convo.message) returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant convo.message := _summary_message.message;
    said record;
begin
    select
        string_agg(p.part ->> 'text', e'\n' order by p.n) filter (
            where p.part ->> 'kind' = 'text'
        ) as content,
        json_agg(
            json_build_object(
                'name', p.part -> 'name',
                'arguments', coalesce(p.part -> 'arguments', p.part -> 'input')
            ) order by p.n
        ) filter (where p.part ->> 'kind' = 'call') as calls,
        json_agg(
            json_build_object(
                'name', p.part -> 'name', 'content', convo._result_text(p.part)
            ) order by p.n
        ) filter (where p.part ->> 'kind' = 'result') as results
    into said
    from (
        select
            e.n,
            convo._carried_part(e.part, source.format, 'openai', 'assistant') as part
        from jsonb_array_elements(convo._payload_parts(source.format, source.payload))
            with ordinality as e (part, n)
    ) as p;
    return json_strip_nulls(json_build_object(
        'seq', source.seq,
        'role', source.role,
        'content', case
            when source.format is null then source.content else said.content
        end,
        'calls', said.calls,
        'results', said.results
    ));
end
$$;

comment on function convo._summary_message(convo.message) is
'A message as a summary is made from it, the same for all formats.';
revoke execute on function convo._summary_message(convo.message) from public;
grant execute on function convo._summary_message(convo.message)
to convo_app, convo_service, convo_reader;
