-- explain_context: what get_context keeps, and why it leaves out the rest.
-- Reads the whole conversation.
-- in: as get_context
-- out: all items, in the order they would be sent in; running_tokens adds up the kept
-- errors: as get_context
-- since: 0.1.0
create function convo.explain_context(
    conversation_id uuid,
    policy text default null,
    token_budget integer default null
) returns table (
    seq integer,
    role text,
    kind text,
    tokens integer,
    running_tokens bigint,
    is_kept boolean,
    reason text
)
language sql stable
begin atomic
    select
        i.seq,
        i.role,
        i.kind,
        i.tokens,
        case when i.reason is null then
                sum(i.tokens) filter (where i.reason is null) over (
                    order by i.section, i.group_seq, i.seq
                    rows unbounded preceding
                )
        end as running_tokens,
        i.reason is null as is_kept,
        coalesce(i.reason, 'kept') as reason
    from convo._considered_items(
            explain_context.conversation_id, explain_context.policy,
            explain_context.token_budget, 0, true
        ) as i
    order by i.section, i.group_seq, i.seq;
end;

comment on function convo.explain_context(uuid, text, integer) is
'What get_context keeps, and for everything else the reason why it is left out.';
revoke execute on function convo.explain_context(uuid, text, integer) from public;
grant execute on function convo.explain_context(uuid, text, integer)
to convo_app, convo_service, convo_reader;
