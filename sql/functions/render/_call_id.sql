-- _call_id: the id that a call goes out with; the id of another maker never does.
-- Anthropic wants ids of certain characters, each once in a request; Gemini needs none.
-- in: the call, the format, the ids that went out before
create function convo._call_id(block convo._render_block, format text, used text[])
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    id text := (_call_id.block).content ->> 'id';
begin
    if (_call_id.block).is_native and (
        _call_id.format <> 'anthropic'
        or id ~ '^[a-zA-Z0-9_-]+$' and not id = any (_call_id.used)
    ) then
        return id;
    elsif _call_id.format = 'gemini' then
        return null;
    end if;
    id := concat_ws('_', 'call', (_call_id.block).seq, (_call_id.block).part);
    while id = any (_call_id.used) loop
        id := id || '_';
    end loop;
    return id;
end
$$;

comment on function convo._call_id(convo._render_block, text, text[]) is
'The id that a call goes out with.';
revoke execute on function convo._call_id(convo._render_block, text, text[])
from public;
grant execute on function convo._call_id(convo._render_block, text, text[])
to convo_app, convo_service, convo_reader;
