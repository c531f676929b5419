-- purge: one batch of what is due by the retention rules of all tenants.
-- Works under row security: its role sees what is due, and can delete what is due and
-- not held. Rows that are locked are left for the next run, so two purges at once share
-- the work; a purge that is killed leaves whole conversations, never parts.
-- in: is_dry_run: only count what this call would remove; page_size: most conversations
-- out: what went, and how many are due but stay because they are held
-- errors: 22023; over 1,000 is 1,000
-- locks: the rows it deletes
-- since: 0.1.0
create function convo.purge(
    is_dry_run boolean default false,
    page_size integer default 500
) returns convo.purge_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    batch_size constant integer := convo._size('page_size', purge.page_size, 1000);
    run_id constant uuid := convo._uuid_v7();
    prompts convo.prompt[];
    result convo.purge_record;
begin
    result.started_at := clock_timestamp();
    result.is_dry_run := purge.is_dry_run;
    if result.is_dry_run is null then
        perform convo._fail('22023', '{"argument": "is_dry_run", "reason": "missing"}');
    end if;
    select count(*) into result.held
    from convo._due_conversations(true, null);

    if result.is_dry_run then
        select count(*), coalesce(sum(d.last_seq), 0)
        into result.conversations, result.messages
        from (
            select a.last_seq
            from convo._due_conversations(false, batch_size) as a
            limit batch_size
        ) as d;
        result.finished_at := clock_timestamp();
        return result;
    end if;

    -- _due_conversations once more, with the rows locked: a rule or an activity that
    -- has just changed is seen on the locked row.
    with due as materialized (
        select c.tenant_id, c.conversation_id
        from convo.retention_policy as r
        cross join lateral (
            select s.tenant_id, s.conversation_id
            from convo.conversation as s
            where s.tenant_id = r.tenant_id
                and s.retention_class = r.retention_class
                and s.created_at < statement_timestamp() - r.max_age
                and (
                    r.basis = 'creation'
                    or s.updated_at < statement_timestamp() - r.max_age
                )
                and not s.is_on_hold
            order by s.created_at
            limit batch_size
            for update skip locked
        ) as c
        limit batch_size
    ),

    gone as (
        delete from convo.conversation as c
        using due as d
        where c.tenant_id = d.tenant_id and c.conversation_id = d.conversation_id
        returning
            c.tenant_id, c.conversation_id, c.user_id, c.last_seq,
            c.system_prompt_sha256
    ),

    texts as (
        select
            g.tenant_id,
            g.user_id,
            g.system_prompt_sha256 as sha256
        from gone as g
        union
        select
            r.tenant_id,
            r.user_id,
            r.sha256
        from convo.request_prompt as r
        inner join due as d
            on d.tenant_id = r.tenant_id and d.conversation_id = r.conversation_id
    ),

    tombstones as (
        insert into convo.tombstone (tenant_id, conversation_id, user_id)
        select g.tenant_id, g.conversation_id, g.user_id
        from gone as g
        on conflict do nothing -- by direct SQL, before its time
    ),

    runs as (
        insert into convo.purge_run (
            tenant_id, purge_run_id, conversations, messages, started_at, finished_at
        )
        select
            g.tenant_id, run_id, count(*), sum(g.last_seq), result.started_at,
            clock_timestamp()
        from gone as g
        group by g.tenant_id
    )

    select
        count(*),
        coalesce(sum(g.last_seq), 0),
        array(
            select row(t.tenant_id, t.user_id, t.sha256, null, null, null)::convo.prompt
            from texts as t
            where t.sha256 is not null
        )
    into result.conversations, result.messages, prompts
    from gone as g;

    perform convo._collect_prompt(p.tenant_id, p.user_id, p.sha256)
    from unnest(prompts) as p;
    result.finished_at := clock_timestamp();
    return result;
end
$$;

comment on function convo.purge(boolean, integer) is
'Removes one batch of what is due by the retention rules, across tenants. Held '
'conversations stay and are counted.';
revoke execute on function convo.purge(boolean, integer) from public;
grant execute on function convo.purge(boolean, integer) to convo_maintainer;
