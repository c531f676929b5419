-- policy_record: a context policy as the functions give it.
create type convo.policy_record as (
    name text,
    strategy text,
    token_budget integer,
    message_limit integer,
    step_tokens integer,
    message_overhead integer,
    start_on_user boolean,
    pin_last_user boolean,
    open_calls text,
    summary_placement text,
    summary_threshold integer,
    summary_share real,
    memory_limit integer,
    recall_limit integer
);

comment on type convo.policy_record is
'The rule by which a context is made. See set_policy for each field.';
