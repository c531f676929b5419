-- _render_anthropic: a context as system and messages of the Anthropic format.
create function convo._render_anthropic(items convo._render_item[]) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    blocks constant convo._render_block[] := convo._trim_anthropic(
        convo._render_blocks(_render_anthropic.items, 'anthropic')
    );
    system text;
begin
    select case
        when count(*) = 1 then min((b.content -> 'text')::text)
        else '[' || string_agg(convo._anthropic_content(b.content), ',') || ']'
    end
    into system
    from unnest(blocks) as b
    where b.role = 'system';
    return '{' || coalesce('"system":' || system || ',', '') || '"messages":['
        || convo._render_turns(_render_anthropic.items, blocks, 'anthropic') || ']}';
end
$$;

comment on function convo._render_anthropic(convo._render_item[]) is
'A context as system and messages of the Anthropic format.';
revoke execute on function convo._render_anthropic(convo._render_item[]) from public;
grant execute on function convo._render_anthropic(convo._render_item[])
to convo_app, convo_service, convo_reader;
