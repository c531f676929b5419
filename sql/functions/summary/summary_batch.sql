-- summary_batch: the oldest messages after the last summary, for the next one.
-- Groups are whole, so one that is larger than the limit comes alone. It ends before the
-- newest user message, and before a call that waits for its result, which it does until
-- ten user messages came after it. What no context would hold is left out.
-- in: the most messages
-- out: a row, or none when there is nothing to summarise: the summary before it
--      (through_seq 0: none), what save_summary takes as through_seq, the messages as an
--      array of {seq, role, content, calls, results}, and their tokens
-- errors: PC001, PC012, PC030, 22023; over 1,000 is 1,000
-- since: 0.1.0
create function convo.summary_batch(
    conversation_id uuid, message_limit integer default 20
) returns setof convo.summary_batch_record
language plpgsql stable rows 1
set search_path = pg_catalog, pg_temp
set enable_hashagg = off -- see _scan_groups
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    size constant integer := convo._size(
        'message_limit', summary_batch.message_limit, 1000
    );
    conversation convo.conversation;
    end_seq integer;
    given_up integer;
    members convo._group_member[];
    kept convo._group_member[] := '{}';
    fresh convo._group_member[];
    batch convo.summary_batch_record;
begin
    select c.* into conversation
    from convo.conversation as c
    where c.tenant_id = tenant and c.conversation_id = summary_batch.conversation_id;
    if not found then
        perform convo._fail_not_found(summary_batch.conversation_id);
    end if;
    end_seq := convo._summary_end(conversation);
    given_up := convo._given_up_seq(conversation);
    for members in
        select
            array_agg(row(
                m.seq, m.group_seq, m.role, m.tokens, m.is_empty, m.call_ids,
                m.result_ids, null, null
            )::convo._group_member)
        from (
            select
                l.seq, l.group_seq, l.role, l.tokens, l.is_empty, l.call_ids,
                l.result_ids
            from convo.message as l
            where l.tenant_id = tenant
                and l.conversation_id = conversation.conversation_id
                and l.group_seq > conversation.summary_through_seq
                and l.group_seq < end_seq
                and l.deleted_at is null
                and l.role <> 'system'
            order by l.group_seq
            limit (select 2147483647) -- see token_window
        ) as m
        group by m.group_seq
        order by m.group_seq
    loop
        members := convo._judge_group(members, false);
        exit when members[1].group_seq >= given_up and exists (
            select from unnest(members) as m where m.reason = 'call without a result'
        );
        fresh := array(select m from unnest(members) as m where m.reason is null);
        exit when size = 0
            or cardinality(kept) > 0 and cardinality(kept) + cardinality(fresh) > size;
        kept := kept || fresh;
        batch.through_seq := members[1].group_seq;
    end loop;
    if cardinality(kept) = 0 then
        return;
    end if;

    batch.previous_through_seq := conversation.summary_through_seq;
    select s.content into batch.previous_summary
    from convo.summary as s
    where s.tenant_id = tenant
        and s.conversation_id = conversation.conversation_id
        and s.through_seq = conversation.summary_through_seq
    order by s.version desc
    limit 1;
    select
        json_agg(convo._summary_message(m.message) order by k.group_seq, k.seq),
        sum(k.tokens)
    into batch.messages, batch.tokens
    from unnest(kept) as k
    cross join lateral (
        select l as message
        from convo.message as l
        where l.tenant_id = tenant
            and l.conversation_id = conversation.conversation_id
            and l.seq = k.seq
        limit 1 -- see _considered_items
    ) as m;
    return next batch;
end
$$;

comment on function convo.summary_batch(uuid, integer) is
'What the next summary is to be made from: the summary before it and the oldest '
'messages after that, groups whole, without open calls and the newest user turn.';
revoke execute on function convo.summary_batch(uuid, integer) from public;
grant execute on function convo.summary_batch(uuid, integer)
to convo_app, convo_service, convo_reader;
