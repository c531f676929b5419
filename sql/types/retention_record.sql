-- retention_record: a retention rule as the functions give it.
create type convo.retention_record as (
    retention_class text,
    max_age interval,
    basis text,
    action text
);

comment on type convo.retention_record is
'How long conversations of a class are kept; max_age null: for ever.';
