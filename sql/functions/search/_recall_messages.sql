-- _recall_messages: which earlier messages belong to what is said now.
-- in: the conversation, its policy (recall_limit: the most), the first message of the
--     window (only what is before it)
-- out: the seqs, best first
create function convo._recall_messages(
    conversation convo.conversation, policy convo.policy_record, before_seq integer
) returns integer[]
language sql stable
return '{}'::integer[];

comment on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) is
'Which earlier messages belong to what is said now.';
revoke execute on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) from public;
grant execute on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) to convo_app, convo_service, convo_reader;
