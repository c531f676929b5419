-- _resolve_policy: the policy that counts for a context.
-- The call's, else the conversation's, else the tenant's default, else the built-in
-- defaults of set_policy. A conversation may name one that is gone: then the default.
-- in: the conversation, the name and the budget given in the call (null: none)
-- errors: 22023 the call names no policy of the tenant, or the budget is too small
create function convo._resolve_policy(
    conversation convo.conversation, name text, token_budget integer
) returns convo.policy_record
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    policy convo.policy_record;
begin
    select p.* into policy
    from convo.list_policies() as p
    where p.name in (_resolve_policy.name, (_resolve_policy.conversation).policy, 'default')
    order by
        p.name is not distinct from _resolve_policy.name desc,
        p.name is not distinct from (_resolve_policy.conversation).policy desc
    limit 1;
    if _resolve_policy.name is distinct from policy.name
        and _resolve_policy.name is not null
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'policy', 'reason', 'there is no such policy'
        ));
    elsif policy.name is null then
        policy := row(
            'default', 'summary', 8000, null, 0, 0, true, true, 'drop', 'exchange',
            20000, 0.8, 15, 0
        );
    end if;
    policy.token_budget := coalesce(_resolve_policy.token_budget, policy.token_budget);
    if policy.token_budget < greatest(2 * policy.step_tokens, 0) then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'token_budget', 'value', policy.token_budget,
            'minimum', 2 * policy.step_tokens
        ));
    end if;
    return policy;
end
$$;

comment on function convo._resolve_policy(convo.conversation, text, integer) is
'The policy that counts for a context, with the budget of the call.';
revoke execute on function convo._resolve_policy(convo.conversation, text, integer)
from public;
grant execute on function convo._resolve_policy(convo.conversation, text, integer)
to convo_app, convo_service, convo_reader;
