-- _render_turns: messages of formats in which user and assistant take turns.
-- Neighbours of one role are one message. A message that stands alone is as it was.
-- out: messages as JSON text, with commas between them; the first is the user's
create function convo._render_turns(
    items convo._render_item[], blocks convo._render_block[], format text
) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    is_anthropic constant boolean := _render_turns.format = 'anthropic';
    first_role text;
    messages text;
begin
    select
        min(t.role) filter (where t.turn = 1),
        string_agg(t.message, ',' order by t.turn)
    into first_role, messages
    from (
        select
            p.turn,
            p.role,
            case
                when bool_and(p.is_whole)
                    and count(distinct p.item) = 1
                    and array_agg(p.part order by p.n)
                    = array_agg(p.part order by p.part)
                    then _render_turns.items[min(p.item)].payload::text
                else convo._turn_message(
                    _render_turns.format, p.role,
                    string_agg(p.content, ',' order by p.n)
                )
            end as message
        from (
            select
                o.*, count(*) filter (where o.is_turn) over (order by o.n) as turn
            from (
                select
                    b.role, b.item, b.part, b.is_whole, n.n,
                    b.role is distinct from lag(b.role) over (order by n.n) as is_turn,
                    case
                        when b.raw is not null then b.raw
                        when is_anthropic
                            then convo._anthropic_block(_render_turns.blocks[n.n])
                        else convo._gemini_part(_render_turns.blocks[n.n])
                    end as content
                from generate_subscripts(_render_turns.blocks, 1) as n (n)
                cross join lateral (select (_render_turns.blocks[n.n]).*) as b
                where b.role <> 'system'
            ) as o
        ) as p
        group by p.turn, p.role
    ) as t;
    if first_role is distinct from 'user' then
        messages := concat_ws(',', convo._turn_message(
            _render_turns.format, 'user', case
                when is_anthropic then '{"type":"text","text":"[continued]"}'
                else '{"text":"[continued]"}'
            end
        ), messages);
    end if;
    return messages;
end
$$;

comment on function convo._render_turns(
    convo._render_item[], convo._render_block[], text
) is
'Messages of formats in which user and assistant take turns.';
revoke execute on function convo._render_turns(
    convo._render_item[], convo._render_block[], text
) from public;
grant execute on function convo._render_turns(
    convo._render_item[], convo._render_block[], text
)
to convo_app, convo_service, convo_reader;
