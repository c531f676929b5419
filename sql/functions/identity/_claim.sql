-- _claim: a member of the JWT claims in request.jwt.claims, or null.
-- errors: 22P02 when the claims aren't JSON, 22023 when the member is neither a string
--         nor a number, or over 255 characters: what is garbage must not pass as an id
create function convo._claim(name text) returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    claim constant jsonb := convo._readable(
        nullif(current_setting('request.jwt.claims', true), '')::json
    ) -> _claim.name;
    id constant text := nullif(claim #>> '{}', '');
begin
    if id is not null
        and (jsonb_typeof(claim) not in ('string', 'number') or length(id) > 255)
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'request.jwt.claims', 'member', _claim.name
        ));
    end if;
    return id;
end
$$;

comment on function convo._claim(text) is
'A member of the JWT claims of this transaction, or null.';
revoke execute on function convo._claim(text) from public;
grant execute on function convo._claim(text)
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
