-- _recall_messages: which earlier messages belong to what the user said last.
-- The ones that fit it best by words, and where it has an embedding by meaning too, each
-- with what was said after and before it.
-- in: the conversation, its policy (recall_limit: how many, neighbours apart), the first
--     group of the window (only what is before it)
-- out: the seqs, best first, each once
create function convo._recall_messages(
    conversation convo.conversation, policy convo.policy_record, before_seq integer
) returns integer[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := (_recall_messages.conversation).tenant_id;
    id constant uuid := (_recall_messages.conversation).conversation_id;
    said record;
    model_name text;
    meaning real[];
begin
    select m.seq, m.content into said
    from convo.message as m
    where m.tenant_id = tenant
        and m.conversation_id = id
        and m.role = 'user'
        and m.deleted_at is null
        and not m.is_empty
    order by m.seq desc
    limit 1;
    if to_regclass('convo.embedding') is not null then
        select e.model, e.embedding into model_name, meaning
        from convo._embedding_of(_recall_messages.conversation, said.seq) as e
        order by e.model
        limit 1;
    end if;
    return array(
        with hit as materialized (
            select f.ordinality as place, f.seq, m.group_seq
            from convo._fused_candidates(
                said.content, meaning, model_name, id, 1000
            ) with ordinality as f
            cross join lateral (
                select l.group_seq
                from convo.message as l
                where l.tenant_id = tenant
                    and l.conversation_id = id
                    and l.seq = f.seq
                    and l.group_seq < _recall_messages.before_seq
                    and l.role <> 'system'
                limit 1
            ) as m
            where f.seq <> said.seq
            order by f.ordinality
            limit (_recall_messages.policy).recall_limit
        )

        select n.seq
        from hit as h
        cross join lateral (
            select h.seq, 0 as place
            union all
            (
                select m.seq, 1
                from convo.message as m
                where m.tenant_id = tenant
                    and m.conversation_id = id
                    and m.seq > h.seq
                    and m.group_seq <> h.group_seq
                    and m.group_seq < _recall_messages.before_seq
                    and m.deleted_at is null
                    and m.role <> 'system'
                order by m.seq
                limit 1
            )
            union all
            (
                select m.seq, 2
                from convo.message as m
                where m.tenant_id = tenant
                    and m.conversation_id = id
                    and m.seq < h.seq
                    and m.group_seq <> h.group_seq
                    and m.deleted_at is null
                    and m.role <> 'system'
                order by m.seq desc
                limit 1
            )
        ) as n
        group by n.seq
        order by min(h.place * 3 + n.place)
    );
end
$$;

comment on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) is
'Which earlier messages belong to what the user said last.';
revoke execute on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) from public;
grant execute on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) to convo_app, convo_service, convo_reader;
