-- forget_all: forgets all facts about the user of the context, for good.
-- out: how many there were, expired ones too
-- errors: PC030 (also without a user)
-- since: 0.1.0
create function convo.forget_all() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    owner constant text := convo._require_user();
    forgotten integer;
begin
    -- locked in the order of keys, as remember does
    perform
    from convo.memory as m
    where m.tenant_id = convo.current_tenant_id() and m.user_id = owner
    order by m.key
    for update;
    delete from convo.memory as m
    where m.tenant_id = convo.current_tenant_id() and m.user_id = owner;
    get diagnostics forgotten = row_count;
    return forgotten;
end
$$;

comment on function convo.forget_all() is
'Forgets all facts about the user of the context, with all their versions, for good, '
'and gives how many there were.';
revoke execute on function convo.forget_all() from public;
grant execute on function convo.forget_all() to convo_app, convo_service;
