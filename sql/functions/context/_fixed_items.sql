-- _fixed_items: what stands before the window of a context, and comes off its budget.
-- in: the conversation, where the summary goes, what it covers (0: no summary)
-- out: the system prompt, the system messages, the summary
create function convo._fixed_items(
    conversation convo.conversation, summary_placement text, covered_seq integer
) returns setof convo._context_item
language sql stable
begin atomic
    select
        'system',
        null::integer,
        'system',
        p.content,
        p.tokens,
        1,
        0,
        null::text
    from convo.prompt as p
    where p.tenant_id = (_fixed_items.conversation).tenant_id
        and p.user_id = (_fixed_items.conversation).user_id
        and p.sha256 = (_fixed_items.conversation).system_prompt_sha256
    union all
    select
        'system',
        m.seq,
        m.role,
        m.content,
        m.tokens,
        2,
        m.seq as group_seq,
        case when m.is_empty then 'empty' end
    from convo.message as m
    where m.tenant_id = (_fixed_items.conversation).tenant_id
        and m.conversation_id = (_fixed_items.conversation).conversation_id
        and m.role = 'system'
        and m.deleted_at is null
    union all
    select
        'summary',
        s.through_seq,
        e.role,
        e.content,
        e.tokens,
        3,
        e.place,
        null::text
    from convo.summary as s
    cross join
        lateral
        convo._summary_items(s.content, s.tokens, _fixed_items.summary_placement) as e
    where s.tenant_id = (_fixed_items.conversation).tenant_id
        and s.conversation_id = (_fixed_items.conversation).conversation_id
        and s.through_seq = _fixed_items.covered_seq
        and s.version = (
            select max(v.version)
            from convo.summary as v
            where v.tenant_id = s.tenant_id
                and v.conversation_id = s.conversation_id
                and v.through_seq = s.through_seq
        );
end;

comment on function convo._fixed_items(convo.conversation, text, integer) is
'What stands before the window of a context: system prompt and messages, summary.';
revoke execute on function convo._fixed_items(convo.conversation, text, integer)
from public;
grant execute on function convo._fixed_items(convo.conversation, text, integer)
to convo_app, convo_service, convo_reader;
