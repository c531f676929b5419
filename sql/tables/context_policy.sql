-- context_policy: the rules by which contexts are made, by tenant and name.
create table convo.context_policy (
    tenant_id text collate "C" not null,
    name text not null,
    strategy text not null,
    token_budget integer not null,
    message_limit integer,
    step_tokens integer not null,
    message_overhead integer not null,
    start_on_user boolean not null,
    pin_last_user boolean not null,
    open_calls text not null,
    summary_placement text not null,
    summary_threshold integer not null,
    summary_share real not null,
    memory_limit integer not null,
    recall_limit integer not null,
    constraint context_policy_pkey primary key (tenant_id, name),
    constraint context_policy_tenant_id_check check (
        length(tenant_id) between 1 and 255
    ),
    constraint context_policy_name_check check (length(name) between 1 and 63),
    constraint context_policy_strategy_check check (
        strategy in ('full', 'last_n', 'token_budget', 'summary', 'hybrid')
    ),
    constraint context_policy_token_budget_check check (token_budget > 0),
    constraint context_policy_message_limit_check check (
        message_limit > 0 and (strategy <> 'last_n' or message_limit is not null)
    ),
    constraint context_policy_step_tokens_check check (
        step_tokens between 0 and token_budget / 2
    ),
    constraint context_policy_message_overhead_check check (
        message_overhead between 0 and 1000
    ),
    constraint context_policy_open_calls_check check (open_calls in ('drop', 'keep')),
    constraint context_policy_summary_placement_check check (
        summary_placement in ('exchange', 'system')
    ),
    constraint context_policy_summary_threshold_check check (summary_threshold > 0),
    constraint context_policy_summary_share_check check (
        summary_share > 0 and summary_share <= 1
    ),
    constraint context_policy_memory_limit_check check (
        memory_limit between 0 and 1000
    ),
    constraint context_policy_recall_limit_check check (recall_limit between 0 and 1000)
);

comment on table convo.context_policy is
'Context policies by tenant. The one named default is for conversations without one.';
comment on column convo.context_policy.tenant_id is 'The tenant.';
comment on column convo.context_policy.name is
'Its name; default is the tenant''s own.';
comment on column convo.context_policy.strategy is
'full, last_n, token_budget, summary or hybrid.';
comment on column convo.context_policy.token_budget is 'The most tokens of a context.';
comment on column convo.context_policy.message_limit is
'The most messages in the window of last_n.';
comment on column convo.context_policy.step_tokens is
'Eviction goes in steps of so many tokens; 0: message by message.';
comment on column convo.context_policy.message_overhead is
'Tokens that each message costs beside its own.';
comment on column convo.context_policy.start_on_user is
'Whether what stands before the first user message goes.';
comment on column convo.context_policy.pin_last_user is
'Whether the newest user message is always kept.';
comment on column convo.context_policy.open_calls is
'drop: calls without results go; keep: the one at the end stays.';
comment on column convo.context_policy.summary_placement is
'exchange: as a user and an assistant message; system: in the system text.';
comment on column convo.context_policy.summary_threshold is
'Live tokens at which a summary would be full.';
comment on column convo.context_policy.summary_share is
'The share of the threshold at which a summary is due.';
comment on column convo.context_policy.memory_limit is 'The most memories.';
comment on column convo.context_policy.recall_limit is 'The most recalled messages.';
