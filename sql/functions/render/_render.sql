-- _render: a context as a provider's JSON, by the renderer of a number.
-- What would write other bytes than before gets a new number, and the old one stays:
-- requests that it made are replayed with it.
-- out: as render_context
-- errors: PC060 a renderer that isn't here, of a later version
create function convo._render(
    renderer integer, format text, items convo._render_item[]
) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if _render.renderer <> 1 then
        perform convo._fail(
            'PC060', jsonb_build_object('renderer', _render.renderer)
        );
    end if;
    return case _render.format
        when 'openai' then convo._render_openai(_render.items)
        when 'openai_responses' then convo._render_openai_responses(_render.items)
        when 'anthropic' then convo._render_anthropic(_render.items)
        else convo._render_gemini(_render.items)
    end;
end
$$;

comment on function convo._render(integer, text, convo._render_item[]) is
'A context as a provider''s JSON, by the renderer of a number.';
revoke execute on function convo._render(integer, text, convo._render_item[])
from public;
grant execute on function convo._render(integer, text, convo._render_item[])
to convo_app, convo_service, convo_reader;
