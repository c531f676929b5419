-- current_tenant_id: the tenant on whose behalf this transaction acts, or null.
-- A pinned login has its own tenant, whatever is set; a login in mode token has the one
-- of its signed token. Else JWT claims that hold a tenant count (request.jwt.claims, as
-- PostgREST sets it), else the setting convo.tenant_id.
-- STABLE, never IMMUTABLE: a cached plan would keep another tenant's value.
-- errors: 22P02, 22023 when the claims are garbage, PC031 when the token is
-- since: 0.1.0
create function convo.current_tenant_id() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    login_mode text;
    tenant text;
begin
    select l.mode, l.tenant_id into login_mode, tenant
    from convo_private.tenant_login as l
    where l.role_name = session_user;
    if login_mode = 'token' then
        return (
            convo_private._verified_context(current_setting('convo.token', true))
        )[1];
    elsif tenant is null and current_setting('request.jwt.claims', true) <> '' then
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
