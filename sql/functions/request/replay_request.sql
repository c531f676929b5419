-- replay_request: the exact bytes of a request, also after edits, soft deletions, new
-- summaries, changed memories and upgrades.
-- errors: PC003, PC030, PC060 something was erased since: DETAIL names it
-- since: 0.1.0
create function convo.replay_request(request_id uuid) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request constant convo.request := convo._require_request(
        replay_request.request_id
    );
    body constant text := convo._request_body(request);
begin
    if sha256(convert_to(body, 'UTF8')) <> request.body_sha256 then
        perform convo._fail('PC060', jsonb_build_object(
            'request_id', request.request_id, 'reason', 'the bytes differ'
        ));
    end if;
    return body;
end
$$;

comment on function convo.replay_request(uuid) is
'The exact bytes of a request that was prepared. PC060, and nothing else, if something '
'in it was erased since.';
revoke execute on function convo.replay_request(uuid) from public;
grant execute on function convo.replay_request(uuid)
to convo_app, convo_service, convo_reader;
