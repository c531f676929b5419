-- retention_policy: how long conversations of a class are kept, by tenant.
create table convo.retention_policy (
    tenant_id text collate "C" not null,
    retention_class text not null,
    max_age interval,
    basis text not null,
    action text not null,
    constraint retention_policy_pkey primary key (tenant_id, retention_class),
    constraint retention_policy_retention_class_check check (
        length(retention_class) between 1 and 63
    ),
    -- Part by part: a time minus an age that leaves the calendar is an error, and one
    -- tenant's rule would stop the purge of all.
    constraint retention_policy_max_age_check check (
        max_age >= interval '0'
        and extract(year from max_age) between 0 and 1000
        and extract(day from max_age) between 0 and 400000
        and extract(hour from max_age) between 0 and 10000000
    ),
    constraint retention_policy_basis_check check (basis in ('activity', 'creation')),
    constraint retention_policy_action_check check (action in ('delete')),
    constraint retention_policy_tenant_id_check check (
        length(tenant_id) between 1 and 255
    )
);

comment on table convo.retention_policy is
'Retention rules by tenant and class. A class without a rule is kept for ever.';
comment on column convo.retention_policy.tenant_id is 'The tenant.';
comment on column convo.retention_policy.retention_class is
'The class that conversations name.';
comment on column convo.retention_policy.max_age is
'How old they may become, at most 1,000 years; null: for ever.';
comment on column convo.retention_policy.basis is
'What age counts from: the last activity, or creation.';
comment on column convo.retention_policy.action is 'What the purge does: delete.';
