-- forget: forgets a fact about the user of the context, with all versions, for good.
-- out: how many there were, 0 or 1
-- errors: PC030 (also without a user)
-- since: 0.1.0
create function convo.forget(key text) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    owner constant text := convo._require_user();
    forgotten integer;
begin
    delete from convo.memory as m
    where m.tenant_id = convo.current_tenant_id()
        and m.user_id = owner
        and m.key = forget.key;
    get diagnostics forgotten = row_count;
    return forgotten;
end
$$;

comment on function convo.forget(text) is
'Forgets a fact about the user of the context, with all its versions, for good. Gives '
'how many there were, 0 or 1.';
revoke execute on function convo.forget(text) from public;
grant execute on function convo.forget(text) to convo_app, convo_service;
