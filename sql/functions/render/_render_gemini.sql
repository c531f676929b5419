-- _render_gemini: a context as systemInstruction and contents of the Gemini format.
create function convo._render_gemini(items convo._render_item[]) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    blocks constant convo._render_block[] := convo._render_blocks(
        _render_gemini.items, 'gemini'
    );
    system text;
begin
    select string_agg(format('{"text":%s}', b.content -> 'text'), ',') into system
    from unnest(blocks) as b
    where b.role = 'system';
    return '{'
        || coalesce('"systemInstruction":{"parts":[' || system || ']},', '')
        || '"contents":['
        || convo._render_turns(_render_gemini.items, blocks, 'gemini') || ']}';
end
$$;

comment on function convo._render_gemini(convo._render_item[]) is
'A context as systemInstruction and contents of the Gemini format.';
revoke execute on function convo._render_gemini(convo._render_item[]) from public;
grant execute on function convo._render_gemini(convo._render_item[])
to convo_app, convo_service, convo_reader;
