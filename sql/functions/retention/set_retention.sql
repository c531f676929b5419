-- set_retention: says how long conversations of a class are kept in this tenant.
-- in: max_age at most 1,000 years, null: for ever; basis: what age counts from, activity
--     or creation
-- errors: 22023, PC030
-- since: 0.1.0
create function convo.set_retention(
    retention_class text,
    max_age interval,
    basis text default 'activity',
    action text default 'delete'
) returns convo.retention_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    result convo.retention_record;
begin
    if coalesce(length(set_retention.retention_class), 0) not between 1 and 63 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'retention_class', 'minimum_length', 1, 'maximum_length', 63
        ));
    elsif set_retention.basis is null
        or set_retention.basis not in ('activity', 'creation')
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'basis', 'allowed', array['activity', 'creation']
        ));
    elsif set_retention.action is distinct from 'delete' then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'action', 'allowed', array['delete']
        ));
    end if;
    insert into convo.retention_policy as r (
        tenant_id, retention_class, max_age, basis, action
    )
    values (
        convo._require_tenant(), set_retention.retention_class, set_retention.max_age,
        set_retention.basis, set_retention.action
    )
    on conflict (tenant_id, retention_class) do update
        set max_age = excluded.max_age,
            basis = excluded.basis,
            action = excluded.action
    returning r.retention_class, r.max_age, r.basis, r.action into result;
    return result;
exception when check_violation then
    perform convo._fail('22023', jsonb_build_object(
        'argument', 'max_age', 'minimum', 0, 'maximum', '1000 years'
    ));
end
$$;

comment on function convo.set_retention(text, interval, text, text) is
'Says how long conversations of a class are kept in this tenant; max_age null: for '
'ever.';
revoke execute on function convo.set_retention(text, interval, text, text) from public;
grant execute on function convo.set_retention(text, interval, text, text)
to convo_service;
