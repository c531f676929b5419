-- memory_record: a memory as the functions give it.
create type convo.memory_record as (
    key text,
    value text,
    version integer,
    source_conversation_id uuid,
    created_at timestamptz(3),
    updated_at timestamptz(3),
    last_accessed_at timestamptz(3),
    expires_at timestamptz(3)
);

comment on type convo.memory_record is
'What is known about a user under a key; version grows with each new value.';
