-- current_user_id: the user on whose behalf this transaction acts, or null.
-- From the same source as the tenant: sub of the JWT claims when they hold a tenant, else
-- the setting convo.user_id. A pinned login needs no tenant in its claims.
-- errors: 22P02, 22023 when the claims are garbage
-- since: 0.1.0
create function convo.current_user_id() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    is_from_claims boolean := false;
begin
    if current_setting('request.jwt.claims', true) <> '' then
        is_from_claims := convo._claim('tenant_id') is not null;
        if not is_from_claims and convo._claim('sub') is not null then
            is_from_claims := exists (
                select
                from convo_private.tenant_login as l
                where l.role_name = session_user and l.mode = 'pinned'
            );
        end if;
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
