-- _store_frame: stores once what requests share.
-- in: the frame, without its id; its texts by part, in the order system, memory,
--     parameters, tools, null where there is none
-- out: the frame
create function convo._store_frame(frame convo.request_frame, texts text[])
returns convo.request_frame
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    stored convo.request_frame := _store_frame.frame;
    names constant text[] := array['system', 'memory', 'parameters', 'tools'];
    hashes bytea[];
begin
    hashes := array(
        select convo._store_prompt(stored.user_id, t.text)
        from unnest(_store_frame.texts) with ordinality as t (text, n)
        order by t.n
    );
    stored.parts := array(
        select names[h.n]
        from unnest(hashes) with ordinality as h (hash, n)
        where h.hash is not null
        order by h.n
    );
    stored.frame_id := substr(encode(sha256(convert_to(
        jsonb_build_array(stored, hashes)::text, 'UTF8'
    )), 'hex'), 1, 32)::uuid;

    insert into convo.request_frame (
        tenant_id, conversation_id, frame_id, user_id, format, model, policy, rules,
        renderer, parts
    )
    values (
        stored.tenant_id, stored.conversation_id, stored.frame_id, stored.user_id,
        stored.format, stored.model, stored.policy, stored.rules, stored.renderer,
        stored.parts
    )
    on conflict do nothing;
    insert into convo.request_prompt (
        tenant_id, conversation_id, frame_id, part, user_id, sha256
    )
    select
        stored.tenant_id, stored.conversation_id, stored.frame_id, names[h.n],
        stored.user_id, h.hash
    from unnest(hashes) with ordinality as h (hash, n)
    where h.hash is not null
    on conflict do nothing;
    return stored;
end
$$;

comment on function convo._store_frame(convo.request_frame, text[]) is
'Stores once what requests of a conversation share.';
revoke execute on function convo._store_frame(convo.request_frame, text[]) from public;
grant execute on function convo._store_frame(convo.request_frame, text[])
to convo_app, convo_service;
