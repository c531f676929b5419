-- get_policy: a context policy of this tenant.
-- out: a row, or none
-- errors: PC030
-- since: 0.1.0
create function convo.get_policy(name text) returns setof convo.policy_record
language sql stable rows 1
begin atomic
    select p.*
    from convo.list_policies() as p
    where p.name = get_policy.name;
end;

comment on function convo.get_policy(text) is
'A context policy of this tenant, or no row.';
revoke execute on function convo.get_policy(text) from public;
grant execute on function convo.get_policy(text)
to convo_app, convo_service, convo_reader;
