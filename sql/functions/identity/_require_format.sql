-- _require_format: refuses a name that isn't one of a provider's format.
-- errors: 22023
create function convo._require_format(format text) returns void
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    formats constant text[] := array[
        'openai', 'openai_responses', 'anthropic', 'gemini'
    ];
begin
    if (_require_format.format = any (formats)) is not true then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'format', 'allowed', formats
        ));
    end if;
end
$$;

comment on function convo._require_format(text) is
'Refuses a name that isn''t one of a provider''s format.';
revoke execute on function convo._require_format(text) from public;
grant execute on function convo._require_format(text)
to convo_app, convo_service, convo_reader;
