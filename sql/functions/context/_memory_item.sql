-- _memory_item: what is known about the owner, as an item of a context.
-- in: the conversation, the most memories
-- out: an item that stands after the system's and before the summary, or none
create function convo._memory_item(
    conversation convo.conversation, memory_limit integer
) returns setof convo._context_item
language sql stable rows 1
begin atomic
    select
        'memory',
        null::integer,
        'system',
        b.content,
        convo.estimate_tokens(b.content),
        3,
        0,
        null::text
    from convo._memory_block(
            (_memory_item.conversation).tenant_id,
            (_memory_item.conversation).user_id,
            _memory_item.memory_limit
        ) as b;
end;

comment on function convo._memory_item(convo.conversation, integer) is
'What is known about the owner, as an item of a context.';
revoke execute on function convo._memory_item(convo.conversation, integer) from public;
grant execute on function convo._memory_item(convo.conversation, integer)
to convo_app, convo_service, convo_reader;
