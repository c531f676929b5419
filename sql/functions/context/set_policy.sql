-- set_policy: sets a context policy of this tenant, whole: what isn't given is the default.
-- in: name: 'default' is for conversations that name none
--     strategy: full (everything live), last_n (message_limit messages, whole groups),
--       token_budget (the newest that fit), summary (the summary, then the newest that
--       fit), hybrid (as summary, with recalled messages)
--     token_budget: the most tokens of a context, everything counted
--     step_tokens: eviction in steps of so many tokens, so that the beginning stays the
--       same for many turns and prompt caches hit; 0: no steps, at most half the budget
--     message_overhead: tokens that each message costs beside its own
--     start_on_user: what stands before the first user message goes
--     pin_last_user: the newest user message is always kept
--     open_calls: drop leaves out calls without results; keep keeps the one at the end
--     summary_placement: exchange (a user and an assistant message) or system
--     summary_threshold, summary_share: a summary is due over share * threshold tokens
-- errors: 22023, PC030
-- since: 0.1.0
create function convo.set_policy(
    name text,
    strategy text default 'summary',
    token_budget integer default 8000,
    message_limit integer default null,
    step_tokens integer default 0,
    message_overhead integer default 0,
    start_on_user boolean default true,
    pin_last_user boolean default true,
    open_calls text default 'drop',
    summary_placement text default 'exchange',
    summary_threshold integer default 20000,
    summary_share real default 0.8,
    memory_limit integer default 15,
    recall_limit integer default 0
) returns convo.policy_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    result convo.policy_record;
begin
    insert into convo.context_policy (
        tenant_id, name, strategy, token_budget, message_limit, step_tokens,
        message_overhead, start_on_user, pin_last_user, open_calls, summary_placement,
        summary_threshold, summary_share, memory_limit, recall_limit
    )
    values (
        tenant, set_policy.name, set_policy.strategy, set_policy.token_budget,
        set_policy.message_limit, set_policy.step_tokens, set_policy.message_overhead,
        set_policy.start_on_user, set_policy.pin_last_user, set_policy.open_calls,
        set_policy.summary_placement, set_policy.summary_threshold,
        set_policy.summary_share, set_policy.memory_limit, set_policy.recall_limit
    )
    on conflict (tenant_id, name) do update
        set strategy = excluded.strategy,
            token_budget = excluded.token_budget,
            message_limit = excluded.message_limit,
            step_tokens = excluded.step_tokens,
            message_overhead = excluded.message_overhead,
            start_on_user = excluded.start_on_user,
            pin_last_user = excluded.pin_last_user,
            open_calls = excluded.open_calls,
            summary_placement = excluded.summary_placement,
            summary_threshold = excluded.summary_threshold,
            summary_share = excluded.summary_share,
            memory_limit = excluded.memory_limit,
            recall_limit = excluded.recall_limit;
    select p.* into result from convo.get_policy(set_policy.name) as p;
    return result;
exception when check_violation or not_null_violation then
    declare
        rule text;
        argument text;
    begin
        get stacked diagnostics rule = constraint_name, argument = column_name;
        perform convo._fail('22023', jsonb_build_object(
            'argument', coalesce(
                nullif(argument, ''),
                regexp_replace(rule, '^context_policy_(.*)_check$', e'\\1')
            )
        ));
    end;
end
$$;

comment on function convo.set_policy(
    text, text, integer, integer, integer, integer, boolean, boolean, text, text,
    integer, real, integer, integer
) is
'Sets a context policy of this tenant, whole: what isn''t given is the default. The '
'policy named default is for conversations that name none.';
revoke execute on function convo.set_policy(
    text, text, integer, integer, integer, integer, boolean, boolean, text, text,
    integer, real, integer, integer
) from public;
grant execute on function convo.set_policy(
    text, text, integer, integer, integer, integer, boolean, boolean, text, text,
    integer, real, integer, integer
) to convo_service;
