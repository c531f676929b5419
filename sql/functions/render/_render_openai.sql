-- _render_openai: a context as OpenAI chat messages.
create function convo._render_openai(items convo._render_item[]) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    blocks constant convo._render_block[] := convo._render_blocks(
        _render_openai.items, 'openai'
    );
begin
    return '[' || coalesce((
        select string_agg(m.message, ',' order by m.place)
        from (
            select
                min(b.n) as place,
                case
                    when bool_and(blocks[b.n].is_whole)
                        then _render_openai.items[min(blocks[b.n].item)].payload::text
                    else convo._openai_message(array_agg(blocks[b.n] order by b.n))
                end as message
            from generate_subscripts(blocks, 1) as b (n)
            group by
                case when blocks[b.n].kind = 'result' then b.n end,
                case
                    when blocks[b.n].role = 'assistant' then blocks[b.n].unit
                    else blocks[b.n].item
                end
        ) as m
    ), '') || ']';
end
$$;

comment on function convo._render_openai(convo._render_item[]) is
'A context as OpenAI chat messages.';
revoke execute on function convo._render_openai(convo._render_item[]) from public;
grant execute on function convo._render_openai(convo._render_item[])
to convo_app, convo_service, convo_reader;
