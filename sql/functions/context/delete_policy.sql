-- delete_policy: deletes a context policy of this tenant.
-- Conversations that name it go on with the tenant's default.
-- out: whether there was one
-- errors: PC030
-- since: 0.1.0
create function convo.delete_policy(name text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    delete from convo.context_policy as p
    where p.tenant_id = convo._require_tenant() and p.name = delete_policy.name;
    return found;
end
$$;

comment on function convo.delete_policy(text) is
'Deletes a context policy of this tenant, and gives whether there was one.';
revoke execute on function convo.delete_policy(text) from public;
grant execute on function convo.delete_policy(text) to convo_service;
