-- token_window: the newest messages whose tokens fit a budget, groups whole.
-- sum(tokens) over (order by group_seq desc) gives each message the total from the
-- newest back. The default RANGE frame makes the messages of a group peers with one
-- total, so a call and its results stay or go together. The monotonic count of rows over
-- the budget becomes a run condition, which ends the scan at the edge of the window. The
-- limit, which the planner can't see through, keeps it from sorting the conversation.
-- in: token_budget: the most that may add up
-- out: rows in order of (group_seq, seq), system messages left out; none when the
--      conversation isn't there or isn't the caller's
-- errors: PC030, 22023
-- since: 0.1.0
create function convo.token_window(conversation_id uuid, token_budget integer)
returns table (
    seq integer,
    role text,
    content text,
    tokens integer,
    running_tokens bigint
)
language sql stable rows 50
begin atomic
    select
        w.seq,
        w.role,
        w.content,
        w.tokens,
        w.running_tokens
    from (
        select
            s.*,
            count(*) filter (where s.running_tokens > token_window.token_budget) over (
                order by s.group_seq desc
                rows unbounded preceding
            ) as over_budget
        from (
            select
                m.seq,
                m.role,
                m.content,
                m.tokens,
                m.group_seq,
                sum(m.tokens) over (order by m.group_seq desc) as running_tokens
            from (
                select
                    l.seq,
                    l.role,
                    l.content,
                    l.tokens,
                    l.group_seq
                from convo.message as l
                where l.tenant_id = (select convo._require_tenant())
                    and l.conversation_id = token_window.conversation_id
                    and l.deleted_at is null
                    and l.role <> 'system'
                order by l.group_seq desc
                limit (
                    select greatest(2147483647, convo._size(
                        'token_budget', token_window.token_budget, 2147483647
                    ))
                )
            ) as m
        ) as s
    ) as w
    where w.over_budget <= 0
    order by w.group_seq, w.seq;
end;

comment on function convo.token_window(uuid, integer) is
'The newest live messages, other than system ones, whose tokens fit a budget, oldest '
'of them first. running_tokens is the total from the newest back; a tool call and its '
'results stay or go together.';
revoke execute on function convo.token_window(uuid, integer) from public;
grant execute on function convo.token_window(uuid, integer)
to convo_app, convo_service, convo_reader;
