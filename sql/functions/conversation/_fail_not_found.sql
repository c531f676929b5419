-- _fail_not_found: says that a conversation is not there, or was deleted.
-- Not found and not the caller's are one error, with the same words.
-- errors: PC012 when the caller's conversation was deleted, else PC001
create function convo._fail_not_found(conversation_id uuid) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform convo._fail(
        case
            when exists (
                select
                from convo.tombstone as t
                where t.tenant_id = convo._require_tenant()
                    and t.conversation_id = _fail_not_found.conversation_id
            ) then 'PC012'
            else 'PC001'
        end,
        jsonb_build_object('conversation_id', _fail_not_found.conversation_id)
    );
end
$$;

comment on function convo._fail_not_found(uuid) is
'Raises PC012 for a conversation of the caller that was deleted, else PC001.';
revoke execute on function convo._fail_not_found(uuid) from public;
grant execute on function convo._fail_not_found(uuid)
to convo_app, convo_service, convo_reader;
