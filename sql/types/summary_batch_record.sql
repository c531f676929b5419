-- summary_batch_record: what the next summary of a conversation is to be made from.
create type convo.summary_batch_record as (
    previous_summary text,
    previous_through_seq integer,
    through_seq integer,
    messages json,
    tokens bigint
);

comment on type convo.summary_batch_record is
'What the next summary is made from: the one before, and the messages after it.';
