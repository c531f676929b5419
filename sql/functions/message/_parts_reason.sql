-- _parts_reason: why the parts of a message are not valid, or null if they are.
-- in: the role, and what a _..._parts function made of the message
create function convo._parts_reason(role text, parts jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return (
        select min(case
            when p.kind is null then 'a content part is not valid'
            when p.kind in ('text', 'reasoning')
                and jsonb_typeof(p.part -> 'text') is distinct from 'string'
                then 'a text is not a string'
            when p.kind in ('image', 'file', 'audio') and coalesce(
                p.part ->> 'data', p.part ->> 'url', p.part ->> 'id', ''
            ) = '' then 'an image, file or audio has no source'
            when p.kind = 'call' and (
                coalesce(p.part ->> 'id', '') = ''
                or coalesce(p.part ->> 'name', '') = ''
                or jsonb_typeof(p.part -> 'id') <> 'string'
                or jsonb_typeof(p.part -> 'name') <> 'string'
                or coalesce(
                    jsonb_typeof(p.part -> 'arguments'), jsonb_typeof(p.part -> 'input')
                ) is distinct from 'string'
            ) then 'a call has no id, name or arguments'
            when p.kind = 'call' and _parts_reason.role <> 'assistant'
                then 'only an assistant message has calls'
            when p.kind = 'result' and (
                coalesce(p.part ->> 'id', '') = ''
                or jsonb_typeof(p.part -> 'id') <> 'string'
            ) then 'a result has no call id'
            when p.kind = 'result' and _parts_reason.role in ('assistant', 'system')
                then 'an assistant or system message has no results'
            when p.kind = 'result' then convo._parts_reason('user', p.part -> 'parts')
        end)
        from (
            select e.part, e.part ->> 'kind' as kind
            from jsonb_array_elements(_parts_reason.parts) as e (part)
        ) as p
    );
end
$$;

comment on function convo._parts_reason(text, jsonb) is
'Why the parts of a message are not valid, or null.';
revoke execute on function convo._parts_reason(text, jsonb) from public;
grant execute on function convo._parts_reason(text, jsonb)
to convo_app, convo_service;
