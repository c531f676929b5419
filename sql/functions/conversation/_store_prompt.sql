-- _store_prompt: stores a shared text once, and holds it until the transaction ends.
-- in: owner and text; out: its hash, or null for null or ''
-- locks: the prompt row, FOR KEY SHARE, so that no one collects it meanwhile
create function convo._store_prompt(user_id text, content text) returns bytea
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    hash constant bytea := sha256(convert_to(_store_prompt.content, 'UTF8'));
begin
    if coalesce(_store_prompt.content, '') = '' then
        return null;
    end if;
    loop
        perform
        from convo.prompt as p
        where p.tenant_id = tenant
            and p.user_id = _store_prompt.user_id
            and p.sha256 = hash
        for key share;
        exit when found;
        insert into convo.prompt (tenant_id, user_id, sha256, content, tokens)
        values (
            tenant, _store_prompt.user_id, hash, _store_prompt.content,
            convo.estimate_tokens(_store_prompt.content)
        )
        on conflict do nothing;
        exit when found;
    end loop;
    return hash;
end
$$;

comment on function convo._store_prompt(text, text) is
'Stores a shared text once per user and gives its hash.';
revoke execute on function convo._store_prompt(text, text) from public;
grant execute on function convo._store_prompt(text, text) to convo_app, convo_service;
