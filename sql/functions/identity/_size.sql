-- _size: checks a size argument and bounds it.
-- in: the argument's name, its value, the most that is taken
-- out: the value, or the most
-- errors: 22023 when null or negative
create function convo._size(argument text, size integer, maximum integer)
returns integer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if _size.size is null or _size.size < 0 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', _size.argument, 'value', _size.size, 'minimum', 0
        ));
    end if;
    return least(_size.size, _size.maximum);
end
$$;

comment on function convo._size(text, integer, integer) is
'Checks a size argument and bounds it.';
revoke execute on function convo._size(text, integer, integer) from public;
grant execute on function convo._size(text, integer, integer)
to convo_app, convo_service, convo_reader, convo_maintainer;
