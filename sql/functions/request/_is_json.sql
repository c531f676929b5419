-- _is_json: whether a text is JSON; null is not.
create function convo._is_json(candidate text) returns boolean
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return _is_json.candidate::json is not null;
exception when invalid_text_representation or statement_too_complex then
    return false;
end
$$;

comment on function convo._is_json(text) is 'Whether a text is JSON; null is not.';
revoke execute on function convo._is_json(text) from public;
grant execute on function convo._is_json(text) to convo_app, convo_service;
