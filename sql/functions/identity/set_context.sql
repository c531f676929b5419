-- set_context: says who is asking, for this transaction only.
-- in: tenant, and user (null: no user, for roles that act for a whole tenant)
-- errors: 22023 when empty, or over 255 characters, or the tenant is null
-- since: 0.1.0
create function convo.set_context(tenant_id text, user_id text default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if coalesce(length(set_context.tenant_id), 0) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'tenant_id', 'minimum_length', 1, 'maximum_length', 255
        ));
    elsif length(set_context.user_id) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'user_id', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    perform
        set_config('convo.tenant_id', set_context.tenant_id, true),
        set_config('convo.user_id', coalesce(set_context.user_id, ''), true);
end
$$;

comment on function convo.set_context(text, text) is
'Says who is asking, for this transaction only.';
revoke execute on function convo.set_context(text, text) from public;
grant execute on function convo.set_context(text, text)
to convo_app, convo_service, convo_reader;
