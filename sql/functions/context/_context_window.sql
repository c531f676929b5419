-- _context_window: which messages the window of a context holds.
-- in: the conversation, the policy, the last summarised group (0: none), all live tokens
--     of the body, what is taken off the budget first, whether to explain
-- out: the messages kept (reason null), and the ones come across that were left out
-- errors: PC020
create function convo._context_window(
    conversation convo.conversation,
    policy convo.policy_record,
    covered_seq integer,
    body_tokens bigint,
    fixed_tokens bigint,
    is_explained boolean
) returns convo._group_member[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    is_whole constant boolean := (_context_window.policy).strategy = 'full';
    step constant integer := (_context_window.policy).step_tokens;
    available bigint :=
        (_context_window.policy).token_budget - _context_window.fixed_tokens;
    window_budget bigint := case
        when is_whole then 9223372036854775807
        else convo._stepped_budget(_context_window.body_tokens, available, step)
    end;
    scanned convo._group_member[] := convo._scan_groups(
        _context_window.conversation, _context_window.policy,
        _context_window.covered_seq, window_budget, _context_window.is_explained
    );
    kept record;
    newest_user convo._group_member;
    pinned_seq integer;
    pinned_tokens bigint := 0;
begin
    select
        min(m.running_tokens) as newest_tokens,
        max(m.running_tokens) as tokens,
        max(m.group_seq) as newest_group,
        min(m.group_seq) filter (where m.role = 'user') as first_user_group
    into kept
    from unnest(scanned) as m
    where m.reason is null;

    if kept.first_user_group is null then
        select m.seq, m.tokens into newest_user.seq, newest_user.tokens
        from convo.message as m
        where m.tenant_id = (_context_window.conversation).tenant_id
            and m.conversation_id = (_context_window.conversation).conversation_id
            and m.group_seq > _context_window.covered_seq
            and m.deleted_at is null
            and m.role = 'user'
            and not m.is_empty
        order by m.seq desc
        limit 1;
        if found and (_context_window.policy).pin_last_user then
            pinned_seq := newest_user.seq;
            pinned_tokens := newest_user.tokens::bigint
                + (_context_window.policy).message_overhead;
            available := available - pinned_tokens;
            window_budget := convo._stepped_budget(
                _context_window.body_tokens, available, step
            );
        end if;
    end if;

    if coalesce(kept.newest_tokens, available + 1) > available
        or is_whole and kept.tokens > available
        or (_context_window.policy).start_on_user
        and coalesce(kept.first_user_group, pinned_seq) is null
    then
        perform convo._fail('PC020', jsonb_build_object(
            'conversation_id', (_context_window.conversation).conversation_id,
            'needed', _context_window.fixed_tokens + greatest(
                pinned_tokens + case
                    when is_whole then kept.tokens else kept.newest_tokens
                end,
                -- all that came since a user message that isn't pinned
                (
                    select sum(
                        m.tokens::bigint + (_context_window.policy).message_overhead
                    )
                    from convo.message as m
                    where m.tenant_id = (_context_window.conversation).tenant_id
                        and m.conversation_id
                            = (_context_window.conversation).conversation_id
                        and m.group_seq >= newest_user.seq
                        and m.deleted_at is null
                        and m.role <> 'system'
                        and pinned_seq is null
                ),
                pinned_tokens
            ),
            'available', (_context_window.policy).token_budget,
            'has_user_message',
            kept.first_user_group is not null or newest_user.seq is not null
        ));
    end if;

    for n in 1 .. cardinality(scanned) loop
        scanned[n].reason := case
            when scanned[n].seq = pinned_seq then null
            when scanned[n].reason is not null then scanned[n].reason
            when scanned[n].running_tokens > window_budget
                and scanned[n].group_seq < kept.newest_group
                then 'over the budget'
            when (_context_window.policy).start_on_user
                and scanned[n].group_seq < kept.first_user_group
                then 'before the first user message'
        end;
    end loop;
    if pinned_seq is not null and not _context_window.is_explained then
        scanned := scanned || row(
            pinned_seq, pinned_seq, 'user', null, null, null, null, null, null
        )::convo._group_member;
    end if;
    return scanned;
end
$$;

comment on function convo._context_window(
    convo.conversation, convo.policy_record, integer, bigint, bigint, boolean
) is
'Which messages the window of a context holds.';
revoke execute on function convo._context_window(
    convo.conversation, convo.policy_record, integer, bigint, bigint, boolean
) from public;
grant execute on function convo._context_window(
    convo.conversation, convo.policy_record, integer, bigint, bigint, boolean
) to convo_app, convo_service, convo_reader;
