-- _render_block: a part of an item of a context, on its way into a request.
-- item, part: its place; group_place: the first item of its group; unit: the first item
-- of its OpenAI message, for a result the one of its call; role: a result is the user's;
-- content: the part, see _openai_parts; raw: its own bytes, where its format has parts;
-- is_native: written in the format asked for; is_whole: its item goes out as it is;
-- call, call_id, call_number: the call (of a result, the one answered), the id that it
-- goes out with, its number in its group
create type convo._render_block as (
    item integer,
    part integer,
    seq integer,
    group_seq integer,
    group_place integer,
    unit integer,
    role text,
    kind text,
    content jsonb,
    raw text,
    is_native boolean,
    is_whole boolean,
    call jsonb,
    call_id text,
    call_number integer
);

comment on type convo._render_block is
'A part of an item of a context, on its way into a request.';
