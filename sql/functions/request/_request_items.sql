-- _request_items: the items of a request as they were when it was prepared.
-- in: the request, the summary_placement of its policy
-- errors: PC060 names what is gone
create function convo._request_items(request convo.request, frame convo.request_frame)
returns convo._render_item[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    found record;
begin
    with numbered as (
        select k.kind, s.seq
        from (
            values
                ('message', (_request_items.request).messages),
                ('recalled', (_request_items.request).recalled)
        ) as k (kind, seqs)
        cross join lateral unnest(k.seqs) as r (span)
        cross join lateral generate_series(lower(r.span), upper(r.span) - 1) as s (seq)
    ),

    items as (
        select
            case when n.kind = 'recalled' then 5 when m.role = 'system' then 2 else 6 end
            as section,
            coalesce(m.group_seq, n.seq) as place,
            n.kind,
            n.seq,
            m.group_seq,
            m.role,
            m.content,
            m.format,
            m.payload,
            case when m.seq is null then n.seq end as missing_seq
        from numbered as n
        -- one by one: a generic plan might join them to the whole conversation
        left join lateral (
            select
                l.seq,
                l.group_seq,
                l.role,
                l.format,
                case when o.edit_number is null then l.content else o.content end
                as content,
                case when o.edit_number is null then l.payload else o.payload end
                as payload
            from convo.message as l
            -- what it said before the first edit since
            left join lateral (
                select
                    r.edit_number,
                    r.content,
                    r.payload
                from convo.message_revision as r
                where l.revision > 1
                    and r.tenant_id = l.tenant_id
                    and r.conversation_id = l.conversation_id
                    and r.seq = l.seq
                    and r.edit_number > (_request_items.request).edit_count
                order by r.revision
                limit 1
            ) as o on true
            where l.tenant_id = (_request_items.request).tenant_id
                and l.conversation_id = (_request_items.request).conversation_id
                and l.seq = n.seq
            limit 1
        ) as m on true
        union all
        select
            case when p.part = 'system' then 1 else 3 end,
            0,
            p.part,
            null,
            null,
            'system',
            p.content,
            null,
            null,
            null
        from convo._request_texts(_request_items.request) as p
        where p.part in ('system', 'memory')
        union all
        select
            4,
            e.place,
            'summary',
            s.through_seq,
            null,
            e.role,
            e.content,
            null,
            null,
            null
        from convo.summary as s
        cross join lateral convo._summary_items(
            s.content, s.tokens,
            (_request_items.frame).rules ->> 'summary_placement'
        ) as e
        where s.tenant_id = (_request_items.request).tenant_id
            and s.conversation_id = (_request_items.request).conversation_id
            and s.through_seq = (_request_items.request).summary_seq
            and s.version = coalesce((_request_items.request).summary_version, 1)
    )

    select
        array_agg(
            row(
                i.kind, i.seq, i.group_seq, i.role, i.content, i.format, i.payload
            )::convo._render_item
            order by i.section, i.place, i.seq
        ) as items,
        array_agg(i.missing_seq order by i.seq) filter (
            where i.missing_seq is not null
        ) as missing_messages,
        case when count(*) filter (where i.kind = 'summary') = 0 then
                (_request_items.request).summary_seq
        end as missing_summary
    into found
    from items as i;
    if coalesce(found.missing_messages[1], found.missing_summary) is not null then
        perform convo._fail('PC060', jsonb_strip_nulls(jsonb_build_object(
            'request_id', (_request_items.request).request_id,
            'messages', found.missing_messages,
            'summary', found.missing_summary
        )));
    end if;
    return found.items;
end
$$;

comment on function convo._request_items(convo.request, convo.request_frame) is
'The items of a request as they were when it was prepared.';
revoke execute on function convo._request_items(convo.request, convo.request_frame)
from public;
grant execute on function convo._request_items(convo.request, convo.request_frame)
to convo_app, convo_service, convo_reader;
