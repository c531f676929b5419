-- _render_item: what a renderer has to know of an item of a context.
create type convo._render_item as (
    kind text,
    seq integer,
    group_seq integer,
    role text,
    content text,
    format text,
    payload json
);

comment on type convo._render_item is
'An item of a context, with the message as its provider wrote it.';
