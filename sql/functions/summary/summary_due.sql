-- summary_due: whether a conversation should be summarised by its policy.
-- It should when the live tokens since the last summary, system messages left out, are
-- over summary_share of summary_threshold. Its own policy counts, whatever the strategy.
-- errors: PC001, PC012, PC030
-- since: 0.1.0
create function convo.summary_due(conversation_id uuid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    conversation convo.conversation;
begin
    select c.* into conversation
    from convo.conversation as c
    where c.tenant_id = tenant and c.conversation_id = summary_due.conversation_id;
    if not found then
        perform convo._fail_not_found(summary_due.conversation_id);
    end if;
    return conversation.body_tokens > convo._due_over(
        convo._resolve_policy(conversation, null, null)
    );
end
$$;

comment on function convo.summary_due(uuid) is
'Whether the live tokens since the last summary are over summary_share of '
'summary_threshold of the conversation''s policy.';
revoke execute on function convo.summary_due(uuid) from public;
grant execute on function convo.summary_due(uuid)
to convo_app, convo_service, convo_reader;
