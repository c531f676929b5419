-- _require_user: the user of the context, for functions that act for one.
-- errors: PC030 without a tenant or a user
create function convo._require_user() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    owner constant text := convo.current_user_id();
begin
    perform convo._require_tenant();
    if owner is null then
        perform convo._fail('PC030', '{"missing": "user_id"}');
    end if;
    return owner;
end
$$;

comment on function convo._require_user() is
'The user of the context; PC030 when there is none.';
revoke execute on function convo._require_user() from public;
grant execute on function convo._require_user()
to convo_app, convo_service, convo_reader;
