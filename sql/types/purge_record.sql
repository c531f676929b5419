-- purge_record: what one batch of the purge did.
create type convo.purge_record as (
    conversations integer,
    messages bigint,
    held integer,
    started_at timestamptz(3),
    finished_at timestamptz(3),
    is_dry_run boolean
);

comment on type convo.purge_record is
'One batch: conversations and messages gone, and conversations kept by a hold.';
