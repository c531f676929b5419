-- search_messages: finds live messages by what they say, best first.
-- Any text is a query: its words are looked for, and whatever has none of them isn't
-- found. docs/search.md says how they are ranked.
-- in: conversation_id null: every conversation that the caller may see
-- out: the snippet has U+27E6 and U+27E7 around the words that were found
-- errors: PC030, 22023; over 1,000 is 1,000
-- since: 0.1.0
create function convo.search_messages(
    query text,
    conversation_id uuid default null,
    page_size integer default 20
) returns setof convo.search_record
language sql stable rows 20
begin atomic
    with query as materialized (
        select convo._search_patterns(search_messages.query) as patterns
    )

    select
        c.conversation_id,
        c.seq,
        m.role,
        convo._search_snippet(m.content, p.patterns) as snippet,
        c.score,
        m.created_at
    from convo._search_candidates(
            search_messages.query, search_messages.conversation_id,
            search_messages.page_size
        ) as c
    inner join convo.message as m
        on m.tenant_id = (select convo._require_tenant())
            and m.conversation_id = c.conversation_id
            and m.seq = c.seq
    cross join query as p
    order by c.score desc, c.conversation_id asc, c.seq desc;
end;

comment on function convo.search_messages(text, uuid, integer) is
'Finds live messages by what they say, best first, in one conversation or in all that '
'the caller may see. Any text is a query; the words that were found are marked.';
revoke execute on function convo.search_messages(text, uuid, integer) from public;
grant execute on function convo.search_messages(text, uuid, integer)
to convo_app, convo_service, convo_reader;
