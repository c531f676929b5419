-- _require_tenant: the tenant of the context, for functions that need one.
-- errors: PC030 without a tenant, or, for a role that acts for one user, without a user
create function convo._require_tenant() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo.current_tenant_id();
begin
    if tenant is null then
        perform convo._fail('PC030', '{"missing": "tenant_id"}');
    elsif convo.current_user_id() is null
        and not pg_has_role('convo_service', 'usage')
        and not pg_has_role('convo_reader', 'usage')
    then
        perform convo._fail('PC030', '{"missing": "user_id"}');
    end if;
    return tenant;
end
$$;

comment on function convo._require_tenant() is
'The tenant of the context; PC030 when the caller has not said who is asking.';
revoke execute on function convo._require_tenant() from public;
grant execute on function convo._require_tenant()
to convo_app, convo_service, convo_reader;
