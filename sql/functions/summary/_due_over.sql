-- _due_over: a summary is due when live body tokens are more than this.
create function convo._due_over(policy convo.policy_record) returns bigint
language sql immutable parallel safe
return floor(
    (_due_over.policy).summary_share::numeric * (_due_over.policy).summary_threshold
)::bigint;

comment on function convo._due_over(convo.policy_record) is
'A summary is due when live body tokens are more than this.';
revoke execute on function convo._due_over(convo.policy_record) from public;
grant execute on function convo._due_over(convo.policy_record)
to convo_app, convo_service, convo_reader;
