-- _group_member: what the window of a context has to know of a message.
create type convo._group_member as (
    seq integer,
    group_seq integer,
    role text,
    tokens integer,
    is_empty boolean,
    call_ids text[],
    result_ids text[],
    running_tokens bigint,
    reason text
);

comment on type convo._group_member is
'A message of a group, and why a context leaves it out, if so.';
