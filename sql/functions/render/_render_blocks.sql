-- _render_blocks: the items of a context, part by part, in the order of a request.
-- Results stand directly after the message with their calls, what else their messages
-- hold after them. The newest user message is never left out, whatever it is.
create function convo._render_blocks(items convo._render_item[], format text)
returns convo._render_block[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    blocks convo._render_block[] := '{}';
    newest_user integer;
begin
    for n in 1 .. cardinality(_render_blocks.items) loop
        blocks := blocks
            || convo._item_blocks(_render_blocks.items[n], n, _render_blocks.format);
        if _render_blocks.items[n].role = 'user' then
            newest_user := n;
        end if;
    end loop;
    if not exists (
        select from unnest(blocks) as b where b.item = newest_user
    ) and newest_user is not null then
        blocks := blocks || convo._item_blocks(
            row('message', null, null, 'user', '[unsupported content]', null, null),
            newest_user, _render_blocks.format
        );
    end if;
    blocks := convo._pair_blocks(blocks, _render_blocks.format);
    return array(
        select b
        from unnest(blocks) as b
        -- OpenAI: reasoning stands before what it led to.
        where b.kind <> 'reasoning'
            or _render_blocks.format <> 'openai_responses'
            or exists (
                select
                from unnest(blocks) as o
                where o.group_place = b.group_place
                    and o.item > b.item
                    and o.is_native
                    and o.role = 'assistant'
                    and o.kind <> 'reasoning'
            )
        order by
            b.group_place,
            b.role = 'user' and b.kind <> 'result',
            case when _render_blocks.format = 'openai' then b.unit end,
            b.kind = 'result',
            -- Anthropic: nothing between calls and their results.
            _render_blocks.format = 'anthropic' and b.kind = 'call' and not b.is_native,
            -- Gemini: results of calls without ids are known by their order.
            case
                when _render_blocks.format = 'gemini'
                    and b.kind = 'result' and not b.is_native
                    then b.call_number
            end,
            b.item,
            b.part
    );
end
$$;

comment on function convo._render_blocks(convo._render_item[], text) is
'The items of a context, part by part, in the order of a request.';
revoke execute on function convo._render_blocks(convo._render_item[], text) from public;
grant execute on function convo._render_blocks(convo._render_item[], text)
to convo_app, convo_service, convo_reader;
