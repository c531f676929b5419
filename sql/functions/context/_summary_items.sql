-- _summary_items: a summary as it is sent: an exchange, or a part of the system text.
-- in: the summary, and the policy's summary_placement
-- out: messages in order of place
create function convo._summary_items(content text, tokens integer, placement text)
returns table (role text, content text, tokens integer, place integer)
language sql immutable parallel safe
begin atomic
    select
        'user',
        'Summarize our conversation so far.',
        6,
        1
    where _summary_items.placement = 'exchange'
    union all
    select
        case
            when _summary_items.placement = 'exchange' then 'assistant' else 'system'
        end,
        _summary_items.content,
        _summary_items.tokens,
        2;
end;

comment on function convo._summary_items(text, integer, text) is
'A summary as it is sent: an exchange, or a part of the system text.';
revoke execute on function convo._summary_items(text, integer, text) from public;
grant execute on function convo._summary_items(text, integer, text)
to convo_app, convo_service, convo_reader;
