-- message_record: a message as the functions give it.
create type convo.message_record as (
    seq integer,
    role text,
    content text,
    tokens integer,
    is_estimated boolean,
    created_at timestamptz(3),
    revision integer,
    model text,
    payload json,
    format text,
    metadata jsonb,
    group_seq integer,
    deleted_at timestamptz(3)
);

comment on type convo.message_record is
'A message: content is its text, payload the provider''s own JSON byte for byte.';
