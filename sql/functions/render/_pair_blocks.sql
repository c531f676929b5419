-- _pair_blocks: gives each result its call, by occurrence, since ids repeat.
-- A result without a call goes, and so does a second one for the same call.
-- in: the blocks, groups together; the format asked for
create function convo._pair_blocks(blocks convo._render_block[], format text)
returns convo._render_block[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    paired convo._render_block[] := '{}';
    changed_items integer[] := '{}';
    used text[] := '{}';
    group_place integer;
    group_seq integer;
    open_ids text[];
    calls convo._render_block[];
    block convo._render_block;
    place integer;
begin
    foreach block in array _pair_blocks.blocks loop
        if block.group_seq is distinct from group_seq then
            group_seq := block.group_seq;
            group_place := block.item;
            open_ids := '{}';
            calls := '{}';
        end if;
        block.group_place := group_place;
        block.unit := case
            when block.role = 'assistant' and not block.is_native then group_place
            else block.item
        end;
        if block.kind = 'call' then
            block.call_id := convo._call_id(block, _pair_blocks.format, used);
            block.call := block.content;
            block.call_number := cardinality(calls) + 1;
            used := used || block.call_id;
            open_ids := open_ids || (block.content ->> 'id');
            calls := calls || block;
        elsif block.kind = 'result' then
            place := array_position(open_ids, block.content ->> 'id');
            if place is null then
                changed_items := changed_items || block.item;
                continue;
            end if;
            open_ids[place] := null;
            block := convo._answer_call(block, calls[place]);
        end if;
        if block.is_native and block.call_id <> block.content ->> 'id' then
            block.raw := convo._set_raw(
                block.raw, case block.kind when 'call' then 'id' else 'tool_use_id' end,
                block.call_id
            );
            block.is_whole := false;
        end if;
        if not block.is_whole then
            changed_items := changed_items || block.item;
        end if;
        paired := paired || block;
    end loop;
    for n in 1 .. cardinality(paired) loop
        if paired[n].item = any (changed_items) then
            paired[n].is_whole := false;
        end if;
    end loop;
    return paired;
end
$$;

comment on function convo._pair_blocks(convo._render_block[], text) is
'Gives each result its call; results without one go.';
revoke execute on function convo._pair_blocks(convo._render_block[], text) from public;
grant execute on function convo._pair_blocks(convo._render_block[], text)
to convo_app, convo_service, convo_reader;
