-- _context_item: an item that was considered for a context.
create type convo._context_item as (
    kind text,
    seq integer,
    role text,
    content text,
    tokens integer,
    section integer,
    group_seq integer,
    reason text
);

comment on type convo._context_item is
'An item considered for a context: where it stands, and why it was left out, if so.';
