-- prepare_request: what is to be sent to a model, and a record that gives it again.
-- The memories in it count as accessed.
-- The record refers to messages, summary and texts, so it is small; the body is made
-- from it, here as in replay_request.
-- in: as render_context; model: named in the body, but for gemini, whose address names
--     it; parameters: a JSON object whose members join the body, tools among them, which
--     count in the budget
-- out: the request; body is what you send, as text
-- errors: PC001, PC012, PC020, PC030, 22023, 23514 too long
-- locks: the conversation row, FOR KEY SHARE, until the transaction ends
-- since: 0.1.0
create function convo.prepare_request(
    conversation_id uuid,
    format text,
    model text default null,
    policy text default null,
    token_budget integer default null,
    parameters json default null
) returns convo.request_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    others constant text[] := convo._split_parameters(prepare_request.parameters);
    tool_tokens constant integer := coalesce(convo.estimate_tokens(others[2]), 0);
    context record;
    rules convo.policy_record;
    frame convo.request_frame;
    request convo.request;
    body text;
begin
    perform convo._require_format(prepare_request.format);
    -- so that nobody deletes or transfers it meanwhile
    perform
    from convo.conversation as c
    where c.tenant_id = tenant
        and c.conversation_id = prepare_request.conversation_id
    for key share;
    if not found then
        perform convo._fail_not_found(prepare_request.conversation_id);
    end if;
    -- one statement, so that policy, items and edits are of one moment
    select
        c.user_id,
        c.edit_count,
        p.rules,
        b.keys as memory_keys,
        (
            select nullif(max(s.version), 1)
            from convo.summary as s
            where s.tenant_id = tenant
                and s.conversation_id = prepare_request.conversation_id
                and s.through_seq = i.summary_seq
        ) as summary_version,
        i.*
    into context
    from convo.conversation as c
    cross join lateral (
        select convo._resolve_policy(
            c, prepare_request.policy, prepare_request.token_budget
        ) as rules
    ) as p
    left join lateral convo._memory_block(
        tenant, c.user_id, (p.rules).memory_limit
    ) as b on true
    cross join lateral (
        select
            array[
                min(o.content) filter (where o.kind = 'system' and o.seq is null),
                min(o.content) filter (where o.kind = 'memory')
            ] as texts,
            range_agg(int4range(o.seq, o.seq, '[]')) filter (
                where o.kind in ('system', 'message') and o.seq is not null
            ) as messages,
            range_agg(int4range(o.seq, o.seq, '[]')) filter (
                where o.kind = 'recalled'
            ) as recalled,
            max(o.seq) filter (where o.kind = 'summary') as summary_seq,
            count(*) as items,
            sum(o.tokens) as tokens
        from convo._considered_items(
            c.conversation_id, prepare_request.policy, prepare_request.token_budget,
            tool_tokens, false
        ) as o
        where o.reason is null
    ) as i
    where c.tenant_id = tenant
        and c.conversation_id = prepare_request.conversation_id;

    rules := context.rules;
    frame.tenant_id := tenant;
    frame.conversation_id := prepare_request.conversation_id;
    frame.user_id := context.user_id;
    frame.format := prepare_request.format;
    frame.model := nullif(prepare_request.model, '');
    frame.policy := rules.name;
    frame.rules := to_jsonb(rules) - 'name';
    frame.renderer := convo._renderer();
    frame := convo._store_frame(frame, context.texts || others);

    request.tenant_id := tenant;
    request.request_id := convo._uuid_v7();
    request.conversation_id := frame.conversation_id;
    request.user_id := frame.user_id;
    request.frame_id := frame.frame_id;
    request.messages := context.messages;
    request.recalled := context.recalled;
    request.summary_version := context.summary_version;
    request.edit_count := context.edit_count;
    request.summary_seq := context.summary_seq;
    request.token_count :=
        context.tokens + context.items * rules.message_overhead + tool_tokens;
    body := convo._request_body(request);
    request.body_sha256 := sha256(convert_to(body, 'UTF8'));
    request.created_at := clock_timestamp();
    perform convo._touch_memories(tenant, frame.user_id, context.memory_keys);
    insert into convo.request (
        tenant_id, request_id, conversation_id, frame_id, created_at, token_count,
        summary_seq, edit_count, user_id, body_sha256, messages, recalled,
        summary_version
    )
    values (
        tenant, request.request_id, request.conversation_id, request.frame_id,
        request.created_at, request.token_count, request.summary_seq, request.edit_count,
        request.user_id, request.body_sha256, request.messages, request.recalled,
        request.summary_version
    );
    return convo._request_record(request, frame, body);
end
$$;

comment on function convo.prepare_request(uuid, text, text, text, integer, json) is
'What is to be sent to a model: the rendered context with model and parameters, as '
'text in body. replay_request gives the same bytes again at any time.';
revoke execute on function convo.prepare_request(
    uuid, text, text, text, integer, json
) from public;
grant execute on function convo.prepare_request(uuid, text, text, text, integer, json)
to convo_app, convo_service;
