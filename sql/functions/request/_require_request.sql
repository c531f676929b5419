-- _require_request: a request that the caller may see.
-- errors: PC003
create function convo._require_request(request_id uuid) returns convo.request
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request convo.request;
begin
    select r.* into request
    from convo.request as r
    where r.tenant_id = convo._require_tenant()
        and r.request_id = _require_request.request_id;
    if not found then
        perform convo._fail(
            'PC003', jsonb_build_object('request_id', _require_request.request_id)
        );
    end if;
    return request;
end
$$;

comment on function convo._require_request(uuid) is
'A request that the caller may see; PC003 if there is none.';
revoke execute on function convo._require_request(uuid) from public;
grant execute on function convo._require_request(uuid)
to convo_app, convo_service, convo_reader;
