-- _openai_responses_parts: an item of the OpenAI responses format as parts.
-- in: the item, cleaned by _readable
-- out: an array, see _openai_parts; what isn't valid is a part that lacks a member
create function convo._openai_responses_parts(message jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    item constant jsonb := _openai_responses_parts.message;
    item_type constant text := coalesce(item ->> 'type', 'message');
    part jsonb;
begin
    if item_type = 'message' then
        return convo._openai_content_parts(item -> 'content');
    elsif item_type ~ '_call_output$' then
        part := jsonb_build_object(
            'kind', 'result',
            -- the output of the local shell has its call's id there
            'id', coalesce(item -> 'call_id', case item_type
                when 'local_shell_call_output' then item -> 'id'
            end),
            'parts', case
                when item_type = 'shell_call_output'
                    then convo._openai_content_parts(to_jsonb((
                        select coalesce(string_agg(
                            concat(o.part ->> 'stdout', o.part ->> 'stderr'), ''
                        ), '')
                        from jsonb_path_query(item, '$.output[*]') as o (part)
                    )))
                when jsonb_typeof(item -> 'output') = 'object'
                    then convo._openai_content_parts(
                        jsonb_build_array(item -> 'output')
                    )
                else convo._openai_content_parts(item -> 'output')
            end,
            'is_error', false
        );
    elsif item_type in ('function_call', 'custom_tool_call') then
        part := jsonb_build_object(
            'kind', 'call', 'id', item -> 'call_id', 'name', item -> 'name',
            'arguments', item -> 'arguments', 'input', item -> 'input'
        );
    elsif item_type in (
        'computer_call', 'local_shell_call', 'shell_call', 'apply_patch_call'
    ) then
        part := jsonb_build_object(
            'kind', 'call', 'id', item -> 'call_id', 'name', item_type,
            'arguments', coalesce(
                item -> 'action', item -> 'actions', item -> 'operation', '{}'
            )::text
        );
    elsif item_type = 'reasoning' then
        part := jsonb_build_object('kind', 'reasoning', 'text', coalesce(
            (
                select string_agg(t.text #>> '{}', e'\n')
                from jsonb_path_query(item, '$.summary[*].text') as t (text)
            ),
            (
                select string_agg(t.text #>> '{}', e'\n')
                from jsonb_path_query(item, '$.content[*].text') as t (text)
            ),
            ''
        ));
    else
        part := '{"kind": "other"}';
    end if;
    return jsonb_build_array(jsonb_strip_nulls(part));
end
$$;

comment on function convo._openai_responses_parts(jsonb) is
'An item of the OpenAI responses format as parts.';
revoke execute on function convo._openai_responses_parts(jsonb) from public;
grant execute on function convo._openai_responses_parts(jsonb)
to convo_app, convo_service, convo_reader;
