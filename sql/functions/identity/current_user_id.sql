-- current_user_id: the user on whose behalf this transaction acts, or null.
-- From the same source as the tenant: the signed token for a login in mode token, sub of
-- the JWT claims when they hold a tenant, else the setting convo.user_id. A pinned login
-- needs no tenant in its claims.
-- errors: 22P02, 22023 when the claims are garbage, PC031 when the token is
-- since: 0.1.0
create function convo.current_user_id() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    login_mode text;
    is_from_claims boolean := false;
begin
    select l.mode into login_mode
    from convo_private.tenant_login as l
    where l.role_name = session_user;
    if login_mode = 'token' then
        return (
            convo_private._verified_context(current_setting('convo.token', true))
        )[2];
    elsif current_setting('request.jwt.claims', true) <> '' then
        is_from_claims := convo._claim('tenant_id') is not null
            or coalesce(login_mode = 'pinned', false)
            and convo._claim('sub') is not null;
    end if;
    if is_from_claims then
        return convo._claim('sub');
    end if;
    return nullif(current_setting('convo.user_id', true), '');
end
$$;

comment on function convo.current_user_id() is
'The user on whose behalf this transaction acts, or null. Empty counts as null.';
revoke execute on function convo.current_user_id() from public;
grant execute on function convo.current_user_id()
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
