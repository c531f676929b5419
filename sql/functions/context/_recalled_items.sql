-- _recalled_items: earlier messages that a context holds beside its window.
-- They are chosen from before the window as it would be without them, and take at most
-- half of what is left beside the newest user turn and one step of eviction. The window
-- then gets the rest: it begins at the same message or later, so no message comes twice,
-- and recalled messages never make a context fail. Groups are whole, and as a provider
-- accepts them.
-- in: as _context_window
create function convo._recalled_items(
    conversation convo.conversation,
    policy convo.policy_record,
    covered_seq integer,
    body_tokens bigint,
    fixed_tokens bigint
) returns setof convo._context_item
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := (_recalled_items.conversation).tenant_id;
    overhead constant bigint := (_recalled_items.policy).message_overhead;
    scanned constant convo._group_member[] := convo._context_window(
        _recalled_items.conversation, _recalled_items.policy,
        _recalled_items.covered_seq, _recalled_items.body_tokens,
        _recalled_items.fixed_tokens, false
    );
    shown record;
    room bigint;
    recalled_group integer;
    members convo._group_member[];
    needed bigint;
begin
    select
        -- the newest user message, if it was put in front of the window
        max(m.seq) filter (where m.running_tokens is null) as pinned_seq,
        min(m.group_seq) filter (where m.running_tokens is not null) as first_group,
        coalesce(
            min(m.running_tokens) filter (where m.role = 'user'),
            min(m.running_tokens)
        ) as turn_tokens
    into shown
    from unnest(scanned) as m
    where m.reason is null;
    room := floor((
        (_recalled_items.policy).token_budget - _recalled_items.fixed_tokens
        - (_recalled_items.policy).step_tokens - shown.turn_tokens
        - coalesce((
            select m.tokens + overhead
            from convo.message as m
            where m.tenant_id = tenant
                and m.conversation_id = (_recalled_items.conversation).conversation_id
                and m.seq = shown.pinned_seq
        ), 0)
    ) / 2.0);

    for recalled_group in
        select m.group_seq
        from unnest(convo._recall_messages(
            _recalled_items.conversation, _recalled_items.policy, shown.first_group
        )) with ordinality as r (seq, n)
        cross join lateral ( -- one by one, see _context_items
            select l.group_seq
            from convo.message as l
            where l.tenant_id = tenant
                and l.conversation_id = (_recalled_items.conversation).conversation_id
                and l.seq = r.seq
            limit 1
        ) as m
        where m.group_seq < shown.first_group
            and m.group_seq is distinct from shown.pinned_seq
        group by m.group_seq
        order by min(r.n)
    loop
        members := convo._judge_group(array(
            select row(
                m.seq, m.group_seq, m.role, m.tokens, m.is_empty, m.call_ids,
                m.result_ids, null, null
            )::convo._group_member
            from convo.message as m
            where m.tenant_id = tenant
                and m.conversation_id = (_recalled_items.conversation).conversation_id
                and m.group_seq = recalled_group
                and m.deleted_at is null
                and m.role <> 'system'
        ), false);
        needed := (
            select sum(m.tokens + overhead)
            from unnest(members) as m
            where m.reason is null
        );
        continue when coalesce(needed > room, true);
        room := room - needed;
        return query
        select
            'recalled', m.seq, m.role, m.content, m.tokens, 4, m.group_seq, null::text
        from unnest(members) as k
        cross join lateral (
            select l.seq, l.role, l.content, l.tokens, l.group_seq
            from convo.message as l
            where l.tenant_id = tenant
                and l.conversation_id = (_recalled_items.conversation).conversation_id
                and l.seq = k.seq
            limit 1
        ) as m
        where k.reason is null;
    end loop;
end
$$;

comment on function convo._recalled_items(
    convo.conversation, convo.policy_record, integer, bigint, bigint
) is
'Earlier messages that a context holds beside its window.';
revoke execute on function convo._recalled_items(
    convo.conversation, convo.policy_record, integer, bigint, bigint
) from public;
grant execute on function convo._recalled_items(
    convo.conversation, convo.policy_record, integer, bigint, bigint
) to convo_app, convo_service, convo_reader;
