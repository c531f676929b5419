-- _advance_conversation: moves a conversation's counters, under its row lock.
-- The one statement that gives seqs: it also proves that the conversation is there, is
-- the caller's, and is where the writer thinks it is.
-- in: how many seqs to take, and what is added (negative: taken away) in messages and
--     tokens, altogether and other than system ones
-- out: the conversation as it is now
-- errors: PC001, PC012, PC010
create function convo._advance_conversation(
    conversation_id uuid,
    seqs integer,
    messages bigint,
    tokens bigint,
    body_messages bigint,
    body_tokens bigint,
    expected_seq integer default null
) returns convo.conversation
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    conversation convo.conversation;
begin
    update convo.conversation as c
    set last_seq = c.last_seq + _advance_conversation.seqs,
        message_count = c.message_count + _advance_conversation.messages,
        token_total = c.token_total + _advance_conversation.tokens,
        body_count = c.body_count + _advance_conversation.body_messages,
        body_tokens = c.body_tokens + _advance_conversation.body_tokens,
        summary_due_over = case
            when c.body_tokens + _advance_conversation.body_tokens > c.summary_due_over
                then 9223372036854775807
            else c.summary_due_over
        end,
        updated_at = greatest(c.updated_at, clock_timestamp())
    where c.tenant_id = convo._require_tenant()
        and c.conversation_id = _advance_conversation.conversation_id
    returning c.* into conversation;
    if not found then
        perform convo._fail_not_found(_advance_conversation.conversation_id);
    elsif _advance_conversation.expected_seq
        <> conversation.last_seq - _advance_conversation.seqs
    then
        perform convo._fail('PC010', jsonb_build_object(
            'conversation_id', conversation.conversation_id,
            'expected_seq', _advance_conversation.expected_seq,
            'last_seq', conversation.last_seq - _advance_conversation.seqs
        ));
    end if;
    return conversation;
end
$$;

comment on function convo._advance_conversation(
    uuid, integer, bigint, bigint, bigint, bigint, integer
) is
'Moves a conversation''s counters, under its row lock.';
revoke execute on function convo._advance_conversation(
    uuid, integer, bigint, bigint, bigint, bigint, integer
) from public;
grant execute on function convo._advance_conversation(
    uuid, integer, bigint, bigint, bigint, bigint, integer
) to convo_app, convo_service;
