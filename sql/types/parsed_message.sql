-- _parsed_message: what the readers of provider formats make of one message.
create type convo._parsed_message as (
    role text,
    content text,
    payload json,
    tokens integer,
    is_empty boolean,
    call_ids text[],
    result_ids text[]
);

comment on type convo._parsed_message is
'A provider''s message, read: its text, estimated tokens, calls and results.';
