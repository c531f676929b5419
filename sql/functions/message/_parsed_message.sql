-- _parsed_message: what the parts of a message say about it.
-- Its content is its texts joined by line feeds; without any, those of its results.
-- A message that holds results is a tool's. Tokens: those of all texts; a call, 8 and
-- those of its name and arguments; an image, 85 at detail low, else 765.
-- in: the role, what a _..._parts function made of the message, and the message itself
create function convo._parsed_message(role text, parts jsonb, payload json)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    parsed convo._parsed_message;
    found record;
begin
    select
        string_agg(p.text, e'\n' order by p.n) filter (
            where p.kind = 'text' and not p.is_inner
        ) as own_text,
        string_agg(p.text, e'\n' order by p.n) filter (
            where p.kind = 'text' and p.is_inner
        ) as result_text,
        string_agg(p.text, e'\n' order by p.n) filter (
            where p.kind = 'reasoning'
        ) as reasoning_text,
        array_agg(p.part ->> 'id' order by p.n) filter (
            where p.kind = 'call'
        ) as call_ids,
        array_agg(p.part ->> 'id' order by p.n) filter (
            where p.kind = 'result'
        ) as result_ids,
        coalesce(sum(case p.kind
            when 'call' then 8 + convo.estimate_tokens(concat(
                p.part ->> 'name', p.part ->> 'arguments', p.part ->> 'input'
            ))
            when 'image' then case when p.part ->> 'detail' = 'low' then 85 else 765 end
        end), 0) as tokens,
        bool_or(
            not p.is_inner
            and p.kind not in ('result', 'reasoning')
            and (p.kind <> 'text' or not convo._is_blank(p.text))
        ) is true as has_own
    into found
    from (
        select
            i.part, i.part ->> 'kind' as kind, i.part ->> 'text' as text, i.is_inner,
            row_number() over (order by o.n, i.n) as n
        from jsonb_array_elements(_parsed_message.parts)
            with ordinality as o (part, n)
        cross join lateral (
            select o.part, 0 as n, false as is_inner
            union all
            select r.part, r.n, true
            from jsonb_path_query(o.part, '$.parts[*]') with ordinality as r (part, n)
        ) as i
    ) as p;

    parsed.role := case
        when found.result_ids is null then _parsed_message.role else 'tool'
    end;
    parsed.content := coalesce(found.own_text, found.result_text);
    parsed.payload := _parsed_message.payload;
    parsed.call_ids := found.call_ids;
    parsed.result_ids := found.result_ids;
    parsed.tokens := found.tokens
        + coalesce(convo.estimate_tokens(found.own_text), 0)
        + coalesce(convo.estimate_tokens(found.result_text), 0)
        + coalesce(convo.estimate_tokens(found.reasoning_text), 0);
    parsed.is_empty := not found.has_own;
    return parsed;
end
$$;

comment on function convo._parsed_message(text, jsonb, json) is
'What the parts of a message say about it.';
revoke execute on function convo._parsed_message(text, jsonb, json) from public;
grant execute on function convo._parsed_message(text, jsonb, json)
to convo_app, convo_service;
