-- list_policies: the context policies of this tenant, by name.
-- errors: PC030
-- since: 0.1.0
create function convo.list_policies() returns setof convo.policy_record
language sql stable rows 10
begin atomic
    select
        p.name,
        p.strategy,
        p.token_budget,
        p.message_limit,
        p.step_tokens,
        p.message_overhead,
        p.start_on_user,
        p.pin_last_user,
        p.open_calls,
        p.summary_placement,
        p.summary_threshold,
        p.summary_share,
        p.memory_limit,
        p.recall_limit
    from convo.context_policy as p
    where p.tenant_id = (select convo._require_tenant())
    order by p.name;
end;

comment on function convo.list_policies() is
'The context policies of this tenant, by name.';
revoke execute on function convo.list_policies() from public;
grant execute on function convo.list_policies()
to convo_app, convo_service, convo_reader;
