-- current_tenant_id: the tenant on whose behalf this transaction acts, or null.
-- A pinned login has its own tenant, whatever is set. Else JWT claims that hold a tenant
-- count (request.jwt.claims, as PostgREST sets it), else the setting convo.tenant_id.
-- STABLE, never IMMUTABLE: a cached plan would keep another tenant's value.
-- errors: 22P02, 22023 when the claims are garbage
-- since: 0.1.0
create function convo.current_tenant_id() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant text;
begin
    select l.tenant_id into tenant
    from convo_private.tenant_login as l
    where l.role_name = session_user;
    if tenant is null and current_setting('request.jwt.claims', true) <> '' then
        tenant := convo._claim('tenant_id');
    end if;
    return coalesce(tenant, nullif(current_setting('convo.tenant_id', true), ''));
end
$$;

comment on function convo.current_tenant_id() is
'The tenant on whose behalf this transaction acts, or null. Empty counts as null.';
revoke execute on function convo.current_tenant_id() from public;
grant execute on function convo.current_tenant_id()
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
