-- _require_vector: says that a function needs the vector track, where it is missing.
-- The public functions are the same with and without it. They call what only the track
-- makes, by name: plpgsql looks a name up when a statement runs, so nothing here depends
-- on the track, a later migration of the core can't undo it, and no body is replaced.
-- errors: 0A000
create function convo._require_vector() returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if to_regclass('convo.embedding') is null then
        perform convo._fail('0A000', '{"track": "vector"}');
    end if;
end
$$;

comment on function convo._require_vector() is
'Raises 0A000 where the vector track isn''t installed.';
revoke execute on function convo._require_vector() from public;
grant execute on function convo._require_vector()
to convo_app, convo_service, convo_reader;
