-- _answer: what a provider's response says, whatever its format.
create type convo._answer as (
    messages json,
    model text,
    finish_reason text,
    is_truncated boolean,
    usage json
);

comment on type convo._answer is
'A provider''s response: its messages as JSON array, and what is said about them.';
