-- _has_tombstone: whether a conversation of this id was ever deleted in the tenant.
-- SECURITY DEFINER, since row security hides other users' tombstones and an id must not
-- be used twice. It tells no more than PC013 does.
create function convo_private._has_tombstone(conversation_id uuid) returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return exists (
        select
        from convo.tombstone as t
        where t.tenant_id = convo.current_tenant_id()
            and t.conversation_id = _has_tombstone.conversation_id
    );
end
$$;

comment on function convo_private._has_tombstone(uuid) is
'Whether a conversation of this id was ever deleted in the tenant of the context.';
revoke execute on function convo_private._has_tombstone(uuid) from public;
grant execute on function convo_private._has_tombstone(uuid)
to convo_app, convo_service;
