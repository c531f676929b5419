-- render_context: a context as the provider's own JSON, in an order that it takes.
-- A message stored in that format is there byte for byte; others are converted part by
-- part. Signatures, encrypted reasoning and call ids go only to the provider that made
-- them.
-- in: format openai, openai_responses, anthropic or gemini; the rest as get_context
-- out: openai: chat messages; openai_responses: input items; anthropic: {system,
--      messages}; gemini: {systemInstruction, contents}
-- errors: 22023 unknown format, and those of get_context
-- since: 0.1.0
create function convo.render_context(
    conversation_id uuid,
    format text,
    policy text default null,
    token_budget integer default null
) returns json
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    items convo._render_item[];
begin
    perform convo._require_format(render_context.format);
    items := array(
        select row(
            c.kind, c.seq, m.group_seq, c.role, c.content, m.format, m.payload
        )::convo._render_item
        from convo.get_context(
            render_context.conversation_id, render_context.policy,
            render_context.token_budget
        ) as c
        -- one by one: a generic plan might join them to the whole conversation
        left join lateral (
            select
                l.group_seq,
                l.format,
                l.payload
            from convo.message as l
            where l.tenant_id = tenant
                and l.conversation_id = render_context.conversation_id
                and l.seq = c.seq
                and c.kind in ('system', 'recalled', 'message')
            limit 1
        ) as m on true
        order by c.ordinal
    );
    return convo._render(convo._renderer(), render_context.format, items);
end
$$;

comment on function convo.render_context(uuid, text, text, integer) is
'A context as the JSON of a provider: openai, openai_responses, anthropic or gemini.';
revoke execute on function convo.render_context(uuid, text, text, integer) from public;
grant execute on function convo.render_context(uuid, text, text, integer)
to convo_app, convo_service, convo_reader;
