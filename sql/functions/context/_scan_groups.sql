-- _scan_groups: goes back through a conversation, group by group, and judges each.
-- Stops at the first valid group that doesn't fit, so its cost follows the window; only
-- to explain it goes on to the beginning. The newest valid group always fits.
-- in: the conversation, the policy, the last summarised group (0: none), the tokens that
--     fit, whether to explain
-- out: the live messages come across, other than system ones, newest group first, with
--     the total from the newest back to their group, and a reason where left out
create function convo._scan_groups(
    conversation convo.conversation,
    policy convo.policy_record,
    covered_seq integer,
    window_budget bigint,
    is_explained boolean
) returns convo._group_member[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_hashagg = off -- so that groups come one by one, in the order of the index
as $$
#variable_conflict use_column
declare
    size_limit constant integer := case
        when (_scan_groups.policy).strategy = 'last_n' then (_scan_groups.policy).message_limit
        else 2147483647
    end;
    scanned convo._group_member[] := '{}';
    size integer := 0;
    running bigint := 0;
    is_full boolean := false;
    members convo._group_member[];
    member convo._group_member;
    valid_members integer;
begin
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
            where l.tenant_id = (_scan_groups.conversation).tenant_id
                and l.conversation_id = (_scan_groups.conversation).conversation_id
                and l.group_seq > _scan_groups.covered_seq
                and l.deleted_at is null
                and l.role <> 'system'
            order by l.group_seq desc
            limit (select 2147483647) -- see token_window
        ) as m
        group by m.group_seq
        order by m.group_seq desc
    loop
        members := convo._judge_group(
            members, (_scan_groups.policy).open_calls = 'keep' and size = 0
        );
        valid_members := 0;
        foreach member in array members loop
            if member.reason is null then
                running := running + member.tokens + (_scan_groups.policy).message_overhead;
                valid_members := valid_members + 1;
            end if;
        end loop;
        is_full := is_full
            or size > 0
            and valid_members > 0
            and (running > _scan_groups.window_budget or size + valid_members > size_limit);
        exit when is_full and not _scan_groups.is_explained;
        size := size + valid_members;
        foreach member in array members loop
            member.running_tokens := running;
            if is_full then
                member.reason := coalesce(member.reason, 'over the budget');
            end if;
            scanned := scanned || member;
        end loop;
    end loop;
    return scanned;
end
$$;

comment on function convo._scan_groups(
    convo.conversation, convo.policy_record, integer, bigint, boolean
) is
'Goes back through a conversation, group by group, as far as a window reaches.';
revoke execute on function convo._scan_groups(
    convo.conversation, convo.policy_record, integer, bigint, boolean
) from public;
grant execute on function convo._scan_groups(
    convo.conversation, convo.policy_record, integer, bigint, boolean
) to convo_app, convo_service, convo_reader;
