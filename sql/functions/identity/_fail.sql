-- _fail: raises one of the toolkit's errors, so that each has one wording.
-- in: the SQLSTATE, and ids and numbers for DETAIL, never content
-- errors: always
create function convo._fail(code text, detail jsonb) returns void
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message text;
    hint text;
begin
    select e.message, e.hint into message, hint
    from (values
        ('PC001', 'conversation not found',
            'Check the id, and that the context names the tenant and user who own it.'),
        ('PC002', 'message not found',
            'Check seq with list_messages.'),
        ('PC003', 'request not found',
            'Check the id, and that the context names the tenant and user who own it.'),
        ('PC010', 'changed by somebody else',
            'Read the current state, then try again with the current value.'),
        ('PC011', 'idempotency key or request id used for other content',
            'Use a new key for each append, and prepare a request for each answer.'),
        ('PC012', 'conversation was deleted',
            'Create a new conversation; an id is never used again.'),
        ('PC013', 'conversation id is taken',
            'Leave conversation_id out and let the database make one.'),
        ('PC020', 'what must be kept does not fit the budget',
            'Raise the budget, or append a user message if there is none.'),
        ('PC030', 'no tenant or user set',
            'Call set_context in the same transaction.'),
        ('PC031', 'context token not valid',
            'Mint a new one with a key that is valid now.'),
        ('PC040', 'conversation is on legal hold',
            'Ask for release_conversation, then try again.'),
        ('PC050', 'message not valid in its format',
            'Send the message as the provider documents it.'),
        ('PC060', 'request can not be replayed exactly any more',
            'Look in DETAIL for what was erased since; nothing brings it back.'),
        ('0A000', 'not available without the vector track',
            'Install pgvector, then run pgconvo migrate --track vector.'),
        ('22023', 'invalid argument',
            'See the function''s comment for the values it takes.'),
        ('42501', 'not allowed',
            'Use a role that may do this.')
    ) as e (code, message, hint)
    where e.code = _fail.code;

    raise exception using
        errcode = _fail.code, message = message, detail = _fail.detail::text, hint = hint;
end
$$;

comment on function convo._fail(text, jsonb) is
'Raises the error of a code with constant MESSAGE and HINT.';
revoke execute on function convo._fail(text, jsonb) from public;
grant execute on function convo._fail(text, jsonb)
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
