-- _collect_prompt: deletes a shared text if nothing refers to it any more.
-- The foreign keys decide: where one still refers to it, the deletion is undone.
create function convo._collect_prompt(tenant_id text, user_id text, sha256 bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if _collect_prompt.sha256 is null or exists (
        select
        from convo.conversation as c
        where c.tenant_id = _collect_prompt.tenant_id
            and c.user_id = _collect_prompt.user_id
            and c.system_prompt_sha256 = _collect_prompt.sha256
    ) or exists (
        select
        from convo.request_prompt as r
        where r.tenant_id = _collect_prompt.tenant_id
            and r.user_id = _collect_prompt.user_id
            and r.sha256 = _collect_prompt.sha256
    ) then
        return;
    end if;
    delete from convo.prompt as p
    where p.tenant_id = _collect_prompt.tenant_id
        and p.user_id = _collect_prompt.user_id
        and p.sha256 = _collect_prompt.sha256;
exception when foreign_key_violation or deadlock_detected then
    -- Used by a row that this role or snapshot doesn't see; or two conversations swap
    -- their prompts, and each transaction would wait for the other.
    null;
end
$$;

comment on function convo._collect_prompt(text, text, bytea) is
'Deletes a shared text if nothing refers to it any more.';
revoke execute on function convo._collect_prompt(text, text, bytea) from public;
grant execute on function convo._collect_prompt(text, text, bytea)
to convo_app, convo_service, convo_maintainer;
