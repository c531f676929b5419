-- _lock_request: a request, locked for its outcome to be stored.
-- Two workers with an outcome each come one after the other. The conversation is locked
-- first, as everywhere, so that nobody waits in a circle.
-- errors: PC003, PC001, PC012
-- locks: the conversation row, until the transaction ends
create function convo._lock_request(request_id uuid) returns convo.request
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request convo.request := convo._require_request(_lock_request.request_id);
begin
    perform convo._lock_conversation(request.conversation_id);
    return convo._require_request(_lock_request.request_id);
end
$$;

comment on function convo._lock_request(uuid) is
'A request, with its conversation locked, for its outcome to be stored.';
revoke execute on function convo._lock_request(uuid) from public;
grant execute on function convo._lock_request(uuid) to convo_app, convo_service;
