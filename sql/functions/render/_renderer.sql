-- _renderer: the number of the renderer in use, see _render.
create function convo._renderer() returns integer
language sql immutable parallel safe
begin atomic
    select 1;
end;

comment on function convo._renderer() is 'The number of the renderer in use.';
revoke execute on function convo._renderer() from public;
grant execute on function convo._renderer()
to convo_app, convo_service, convo_reader;
