-- _estimate_openai_parts: the tokens of what isn't text in an OpenAI chat message.
-- A call: its name and arguments, and 8 for its frame. An image: 85 at detail low, else
-- 765, what 1024 by 1024 pixels cost.
create function convo._estimate_openai_parts(message jsonb) returns integer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tokens integer := 0;
begin
    if _estimate_openai_parts.message ?| array['tool_calls', 'function_call'] then
        tokens := (
            select
                coalesce(sum(8 + convo.estimate_tokens(concat(
                    f.target ->> 'name', f.target ->> 'arguments', f.target ->> 'input'
                ))), 0)
            from (
                select coalesce(c.call -> 'function', c.call -> 'custom') as target
                from jsonb_path_query(
                        _estimate_openai_parts.message, '$.tool_calls[*] ? (@ != null)'
                    ) as c (call)
                union all
                select _estimate_openai_parts.message -> 'function_call'
                where jsonb_typeof(_estimate_openai_parts.message -> 'function_call')
                    = 'object'
            ) as f
        );
    end if;
    if jsonb_typeof(_estimate_openai_parts.message -> 'content') = 'array' then
        tokens := tokens + (
            select
                coalesce(sum(
                    case when p.part #>> '{image_url,detail}' = 'low' then 85 else 765 end
                ), 0)
            from jsonb_path_query(
                    _estimate_openai_parts.message,
                    '$.content[*] ? (@.type == "image_url")'
                ) as p (part)
        );
    end if;
    return tokens;
end
$$;

comment on function convo._estimate_openai_parts(jsonb) is
'The tokens of calls and images in an OpenAI chat message.';
revoke execute on function convo._estimate_openai_parts(jsonb) from public;
grant execute on function convo._estimate_openai_parts(jsonb)
to convo_app, convo_service;
