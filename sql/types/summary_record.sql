-- summary_record: a summary as the functions give it.
create type convo.summary_record as (
    through_seq integer,
    content text,
    tokens integer,
    model text,
    created_at timestamptz(3)
);

comment on type convo.summary_record is
'A summary of everything up to the groups that begin at through_seq or before.';
