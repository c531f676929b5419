-- request_record: a request as the functions give it.
create type convo.request_record as (
    request_id uuid,
    conversation_id uuid,
    format text,
    model text,
    policy text,
    body text,
    body_sha256 bytea,
    token_count integer,
    first_seq integer,
    last_seq integer,
    status text,
    created_at timestamptz(3),
    finished_at timestamptz(3),
    renderer integer
);

comment on type convo.request_record is
'What was sent to a model; body is null in lists. status: prepared, completed, failed.';
