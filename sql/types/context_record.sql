-- context_record: an item of a context as the functions give it.
create type convo.context_record as (
    ordinal integer,
    kind text,
    seq integer,
    role text,
    content text,
    tokens integer,
    running_tokens bigint
);

comment on type convo.context_record is
'An item of what is to be sent. kind: system, memory, summary, recalled or message.';
