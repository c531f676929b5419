-- _trim_anthropic: no white space at the end, if the last message is the assistant's.
-- Anthropic refuses it there.
create function convo._trim_anthropic(blocks convo._render_block[])
returns convo._render_block[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    result convo._render_block[] := _trim_anthropic.blocks;
    last constant convo._render_block := result[cardinality(result)];
    trimmed constant text := regexp_replace(
        case when last.kind = 'text' then last.content ->> 'text' end, e'\\s+$', ''
    );
begin
    if last.role = 'assistant' and trimmed <> last.content ->> 'text' then
        result[cardinality(result)].content := jsonb_build_object(
            'kind', 'text', 'text', trimmed
        );
        result[cardinality(result)].is_whole := false;
        result[cardinality(result)].raw := null;
    end if;
    return result;
end
$$;

comment on function convo._trim_anthropic(convo._render_block[]) is
'Blocks without white space at the end of a last message of the assistant.';
revoke execute on function convo._trim_anthropic(convo._render_block[]) from public;
grant execute on function convo._trim_anthropic(convo._render_block[])
to convo_app, convo_service, convo_reader;
