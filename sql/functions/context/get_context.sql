-- get_context: what should be sent to a model, by the rule that the policy declares.
-- System prompt, system messages and summary come first and off the budget. Then the
-- newest groups that fit, in chronological order, with the newest user message in front
-- if it lies before them. Calls without results, results without calls and messages that
-- say nothing are left out.
-- in: policy: a name, else the conversation's, the tenant's default, the built-in one;
--     token_budget: instead of the policy's
-- out: items in the order they are sent in; running_tokens adds up in that order
-- errors: PC001, PC012, PC020 (what must be kept doesn't fit, or there is no user
--     message: DETAIL has needed and available), PC030, 22023
-- since: 0.1.0
create function convo.get_context(
    conversation_id uuid,
    policy text default null,
    token_budget integer default null
) returns setof convo.context_record
language sql stable rows 50
begin atomic
    select
        row_number() over w::integer as ordinal,
        i.kind,
        i.seq,
        i.role,
        i.content,
        i.tokens,
        sum(i.tokens) over w as running_tokens
    from convo._considered_items(
            get_context.conversation_id,
            get_context.policy,
            get_context.token_budget,
            0,
            false
        ) as i
    where i.reason is null
    window
        w as (
            order by i.section, i.group_seq, i.seq
            rows unbounded preceding
        )
    order by ordinal;
end;

comment on function convo.get_context(uuid, text, integer) is
'What should be sent to a model, item by item, by the rule that the policy declares. '
'Never empty: PC020 when what must be kept doesn''t fit the budget.';
revoke execute on function convo.get_context(uuid, text, integer) from public;
grant execute on function convo.get_context(uuid, text, integer)
to convo_app, convo_service, convo_reader;
