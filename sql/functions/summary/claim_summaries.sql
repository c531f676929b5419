-- claim_summaries: conversations of the tenant that are due, for one of many workers.
-- A claimed one is given to nobody else until its summary is saved or the lease is over,
-- so what a worker that died had comes back. Rows that others hold are left out.
-- Reads what may be due, by index: conversations whose body_tokens passed the mark
-- summary_due_over since a claim looked at them, or whose policy was lowered. Where no
-- summary is due yet the mark is set to what their policy says.
-- in: how long the lease runs, at most a day; how many
-- errors: PC030, 22023; over 1,000 is 1,000
-- locks: the conversations it gives or marks
-- since: 0.1.0
create function convo.claim_summaries(
    lease interval default '5 min',
    page_size integer default 10
) returns table (conversation_id uuid, user_id text, body_tokens bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
-- By index, with a generic plan too, which doesn't know how few rows are in the range.
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    instant constant timestamptz(3) := clock_timestamp();
    room integer := convo._size('page_size', claim_summaries.page_size, 1000);
    used_policy text := '';
    probe convo.conversation;
    due_over bigint;
    claimed integer;
begin
    if coalesce(claim_summaries.lease not between '1 ms' and '1 day', true) then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'lease', 'minimum', '1 ms', 'maximum', '1 day'
        ));
    end if;
    -- Each policy that conversations name has its own mark; '' is for those without.
    while room > 0 and used_policy is not null loop
        probe.policy := used_policy;
        due_over := convo._due_over(convo._resolve_policy(probe, null, null));
        return query
        with due as materialized (
            select c.conversation_id
            from convo.conversation as c
            where c.tenant_id = tenant
                and case when c.policy is null then '' else c.policy end = used_policy
                and c.summary_due_over > due_over
                and c.body_tokens > due_over
                and coalesce(c.summary_leased_until <= instant, true)
            order by c.summary_due_over desc
            limit room
            for no key update skip locked
        )

        update convo.conversation as c
        set summary_leased_until = instant + claim_summaries.lease,
            changed_seq = null
        where c.tenant_id = tenant
            -- not a join, which might go through all conversations
            and c.conversation_id = any (array(select d.conversation_id from due as d))
        returning c.conversation_id, c.user_id, c.body_tokens;
        get diagnostics claimed = row_count;
        room := room - claimed;

        if room > 0 then
            with early as materialized (
                select c.conversation_id
                from convo.conversation as c
                where c.tenant_id = tenant
                    and case when c.policy is null then '' else c.policy end = used_policy
                    and c.summary_due_over > due_over
                    and c.body_tokens <= due_over
                order by c.summary_due_over desc
                limit 10000
                for no key update skip locked
            )

            update convo.conversation as c
            set summary_due_over = due_over
            where c.tenant_id = tenant
                and c.conversation_id = any (
                    array(select e.conversation_id from early as e)
                );
        end if;
        used_policy := (
            select case when c.policy is null then '' else c.policy end
            from convo.conversation as c
            where c.tenant_id = tenant
                and case when c.policy is null then '' else c.policy end > used_policy
            order by case when c.policy is null then '' else c.policy end
            limit 1
        );
    end loop;
end
$$;

comment on function convo.claim_summaries(interval, integer) is
'Conversations of the tenant whose summary is due, for one of many workers: nobody '
'else gets them until the summary is saved or the lease is over.';
revoke execute on function convo.claim_summaries(interval, integer) from public;
grant execute on function convo.claim_summaries(interval, integer) to convo_service;
