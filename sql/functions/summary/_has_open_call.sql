-- _has_open_call: whether a call that no summary covers yet waits for its result.
-- in: the conversation, the last group to look at
create function convo._has_open_call(
    conversation convo.conversation, through_seq integer
) returns boolean
language sql stable
begin atomic
    select exists(
        select
        from (
            select
                array_agg(
                    row(
                        m.seq, m.group_seq, m.role, m.tokens, m.is_empty, m.call_ids,
                        m.result_ids, null, null
                    )::convo._group_member
                ) as members
            from convo.message as m
            where m.tenant_id = (_has_open_call.conversation).tenant_id
                and m.conversation_id = (_has_open_call.conversation).conversation_id
                and m.group_seq > (_has_open_call.conversation).summary_through_seq
                and m.group_seq >= (
                    select convo._given_up_seq(_has_open_call.conversation)
                )
                and m.group_seq <= _has_open_call.through_seq
                and m.deleted_at is null
                and m.role <> 'system'
            group by m.group_seq
            having bool_or(m.call_ids is not null)
        ) as g
        cross join lateral unnest(convo._judge_group(g.members, false)) as j
        where j.reason = 'call without a result'
    );
end;

comment on function convo._has_open_call(convo.conversation, integer) is
'Whether a call that no summary covers yet waits for its result.';
revoke execute on function convo._has_open_call(convo.conversation, integer)
from public;
grant execute on function convo._has_open_call(convo.conversation, integer)
to convo_app, convo_service, convo_reader;
