-- _considered_items: what was considered for a context, in the order it would be sent in.
-- in: as get_context; tokens of the budget that go elsewhere; whether to explain: then
--     everything, else little more than is kept
-- out: items with their section (1 system prompt, 2 system messages, 3 memories and
--      summary, 4 recalled messages, 5 messages), and a reason where left out
-- errors: PC001, PC012, PC020, PC030, 22023
create function convo._considered_items(
    conversation_id uuid,
    policy text,
    token_budget integer,
    reserved_tokens integer,
    is_explained boolean
) returns setof convo._context_item
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    conversation convo.conversation;
    rule convo.policy_record;
    overhead bigint;
    fixed convo._context_item[];
    fixed_tokens bigint;
    recalled convo._context_item[] := '{}';
    body_tokens bigint;
    covered_seq integer := 0;
    scanned convo._group_member[];
begin
    perform convo._size(
        'token_budget', coalesce(_considered_items.token_budget, 0), 2147483647
    );
    select c.* into conversation
    from convo.conversation as c
    where c.tenant_id = tenant and c.conversation_id = _considered_items.conversation_id;
    if not found then
        perform convo._fail_not_found(_considered_items.conversation_id);
    end if;
    rule := convo._resolve_policy(
        conversation, _considered_items.policy, _considered_items.token_budget
    );
    overhead := rule.message_overhead;
    if rule.strategy in ('summary', 'hybrid') then
        covered_seq := conversation.summary_through_seq;
    end if;

    fixed := array(
        select i
        from convo._fixed_items(conversation, rule.summary_placement, covered_seq) as i
        union all
        select i from convo._memory_item(conversation, rule.memory_limit) as i
    );
    select
        coalesce(sum(i.tokens + overhead) filter (where i.reason is null), 0)
            + _considered_items.reserved_tokens,
        conversation.token_total
            - coalesce(sum(i.tokens) filter (where i.section = 2), 0)
            + overhead
            * (conversation.message_count - count(*) filter (where i.section = 2))
    into fixed_tokens, body_tokens
    from unnest(fixed) as i;
    if covered_seq > 0 then
        body_tokens := conversation.body_tokens + overhead * conversation.body_count;
    end if;

    if rule.strategy = 'hybrid' and rule.recall_limit > 0 then
        recalled := array(
            select i
            from convo._recalled_items(
                conversation, rule, covered_seq, body_tokens, fixed_tokens
            ) as i
        );
        fixed_tokens := fixed_tokens + (
            select coalesce(sum(i.tokens + overhead), 0) from unnest(recalled) as i
        );
        fixed := fixed || recalled;
    end if;

    -- Not within the query below: joined to no message it might not be called at all.
    scanned := convo._context_window(
        conversation, rule, covered_seq, body_tokens, fixed_tokens,
        _considered_items.is_explained
    );
    return query
    select i.* from unnest(fixed) as i
    union all
    select 'message', m.seq, m.role, m.content, m.tokens, 5, m.group_seq, w.reason
    from unnest(scanned) as w
    -- one by one: a generic plan might join them to the whole conversation
    cross join lateral (
        select
            l.seq,
            l.role,
            l.content,
            l.tokens,
            l.group_seq
        from convo.message as l
        where l.tenant_id = tenant
            and l.conversation_id = conversation.conversation_id
            and l.seq = w.seq
        limit 1
    ) as m
    where (_considered_items.is_explained or w.reason is null)
        and w.seq not in (select i.seq from unnest(recalled) as i)
    union all
    select
        'message', m.seq, m.role, m.content, m.tokens, 5, m.group_seq,
        case when m.deleted_at is not null then 'deleted' else 'summarised' end
    from convo.message as m
    where _considered_items.is_explained
        and m.tenant_id = tenant
        and m.conversation_id = conversation.conversation_id
        and (
            m.deleted_at is not null
            or m.role <> 'system' and m.group_seq <= covered_seq
        )
        and m.seq not in (select i.seq from unnest(recalled) as i);
end
$$;

comment on function convo._considered_items(uuid, text, integer, integer, boolean) is
'What was considered for a context, and why something was left out.';
revoke execute on function convo._considered_items(
    uuid, text, integer, integer, boolean
) from public;
grant execute on function convo._considered_items(
    uuid, text, integer, integer, boolean
) to convo_app, convo_service, convo_reader;
