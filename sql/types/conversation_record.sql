-- conversation_record: a conversation as the functions give it.
create type convo.conversation_record as (
    conversation_id uuid,
    user_id text,
    title text,
    system_prompt text,
    retention_class text,
    policy text,
    last_seq integer,
    message_count integer,
    token_total bigint,
    metadata jsonb,
    created_at timestamptz(3),
    updated_at timestamptz(3),
    archived_at timestamptz(3),
    is_on_hold boolean,
    forked_from uuid,
    forked_at_seq integer
);

comment on type convo.conversation_record is
'A conversation: message_count and token_total count live messages, last_seq all.';
