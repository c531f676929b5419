-- search_record: a message that a search found.
create type convo.search_record as (
    conversation_id uuid,
    seq integer,
    role text,
    snippet text,
    score real,
    created_at timestamptz(3)
);
comment on type convo.search_record is
'A message that a search found, with the part of it that fits the query best.';
