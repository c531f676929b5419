-- _item_blocks: an item of a context, part by part, for one format.
-- in: the item, its place in the context, the format asked for
create function convo._item_blocks(
    item convo._render_item, place integer, format text
) returns convo._render_block[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant text := (_item_blocks.item).format;
    is_native constant boolean := coalesce(source = _item_blocks.format, false);
    role constant text := case (_item_blocks.item).role
        when 'tool' then 'user' else (_item_blocks.item).role
    end;
    raws text[];
    parts jsonb[];
    kept integer[];
begin
    if source is null then
        parts := array[jsonb_build_object(
            'kind', 'text', 'text', (_item_blocks.item).content
        )];
    elsif is_native and source in ('anthropic', 'gemini') then
        raws := convo._raw_parts(source, (_item_blocks.item).payload);
        parts := array(
            select coalesce(
                convo._payload_parts(source, (case source
                    when 'anthropic' then '{"content":[' else '{"parts":['
                end || r.raw || ']}')::json) -> 0,
                '{"kind": "other"}'
            )
            from unnest(raws) with ordinality as r (raw, n)
            order by r.n
        );
    else
        parts := array(
            select jsonb_array_elements(
                convo._payload_parts(source, (_item_blocks.item).payload)
            )
        );
    end if;
    kept := array(
        select p.n
        from unnest(parts) with ordinality as p (part, n)
        where convo._is_sent(p.part, _item_blocks.format, is_native, raws[p.n])
        order by p.n
    );
    return array(
        select row(
            _item_blocks.place, k.n, (_item_blocks.item).seq,
            coalesce((_item_blocks.item).group_seq, -_item_blocks.place),
            null, null, role, parts[k.n] ->> 'kind',
            convo._carried_part(parts[k.n], source, _item_blocks.format, role),
            raws[k.n], is_native, is_native and cardinality(kept) = cardinality(parts),
            null, null, null
        )::convo._render_block
        from unnest(kept) as k (n)
        order by k.n
    );
end
$$;

comment on function convo._item_blocks(convo._render_item, integer, text) is
'An item of a context, part by part, for one format.';
revoke execute on function convo._item_blocks(convo._render_item, integer, text)
from public;
grant execute on function convo._item_blocks(convo._render_item, integer, text)
to convo_app, convo_service, convo_reader;
