-- _render_openai_responses: a context as input items of the OpenAI responses format.
create function convo._render_openai_responses(items convo._render_item[])
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    blocks constant convo._render_block[] := convo._render_blocks(
        _render_openai_responses.items, 'openai_responses'
    );
begin
    return '[' || coalesce((
        select string_agg(m.item, ',' order by m.place)
        from (
            select
                min(b.n) as place,
                case
                    when bool_and(blocks[b.n].is_whole)
                        then _render_openai_responses.items[
                            min(blocks[b.n].item)
                        ].payload::text
                    else convo._openai_responses_item(
                        array_agg(blocks[b.n] order by b.n)
                    )
                end as item
            from generate_subscripts(blocks, 1) as b (n)
            group by
                blocks[b.n].item,
                case
                    when blocks[b.n].is_whole then null
                    when blocks[b.n].kind = 'result' or blocks[b.n].role = 'assistant'
                        then b.n
                end
        ) as m
    ), '') || ']';
end
$$;

comment on function convo._render_openai_responses(convo._render_item[]) is
'A context as input items of the OpenAI responses format.';
revoke execute on function convo._render_openai_responses(convo._render_item[])
from public;
grant execute on function convo._render_openai_responses(convo._render_item[])
to convo_app, convo_service, convo_reader;
