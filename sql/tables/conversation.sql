-- conversation: one row a conversation, with the counter that gives messages their seq.
create table convo.conversation (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    user_id text collate "C" not null,
    title text,
    system_prompt_sha256 bytea,
    retention_class text not null,
    policy text,
    last_seq integer not null default 0,
    message_count integer not null default 0,
    token_total bigint not null default 0,
    body_count integer not null default 0,
    body_tokens bigint not null default 0,
    summary_through_seq integer not null default 0,
    is_on_hold boolean not null default false,
    metadata jsonb not null default '{}',
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    archived_at timestamptz(3),
    forked_from uuid,
    forked_at_seq integer,
    edit_count integer not null default 0,
    summary_due_over bigint not null default 9223372036854775807,
    summary_leased_until timestamptz(3),
    stale_seq integer,
    changed_seq integer,
    constraint conversation_pkey primary key (tenant_id, conversation_id),
    -- what children refer to: so a child's owner is always its conversation's owner
    constraint conversation_owner_key unique (tenant_id, conversation_id, user_id),
    constraint conversation_prompt_fkey
    foreign key (tenant_id, user_id, system_prompt_sha256)
    references convo.prompt (tenant_id, user_id, sha256),
    constraint conversation_tenant_id_check check (length(tenant_id) between 1 and 255),
    constraint conversation_user_id_check check (length(user_id) between 1 and 255),
    constraint conversation_title_check check (length(title) <= 1000),
    constraint conversation_system_prompt_sha256_check check (
        length(system_prompt_sha256) = 32
    ),
    constraint conversation_retention_class_check check (
        length(retention_class) between 1 and 63
    ),
    constraint conversation_policy_check check (length(policy) between 1 and 63),
    constraint conversation_counters_check check (
        last_seq >= message_count
        and summary_through_seq between 0 and last_seq
        and message_count >= body_count
        and body_count >= 0
        and token_total >= body_tokens
        and body_tokens >= 0
    ),
    constraint conversation_metadata_check check (
        jsonb_typeof(metadata) = 'object' and pg_column_size(metadata) <= 65536
    )
) with (fillfactor = 80); -- room for HOT updates of the counters

-- For lists of one user, and for the foreign key to prompt. It holds nothing that an
-- append changes: an index on updated_at would end HOT updates.
create index conversation_user_id_system_prompt_sha256_idx
on convo.conversation (tenant_id, user_id, system_prompt_sha256);

-- For the purge: whatever is due by activity was created before the limit too.
create index conversation_retention_class_created_at_idx
on convo.conversation (tenant_id, retention_class, created_at);

-- For claim_summaries: what was not looked at since body_tokens passed summary_due_over
-- comes last. An append changes none of it but when it passes that mark, so updates stay
-- HOT; an index on body_tokens would end that. Not coalesce: row security takes it for
-- leaky and wouldn't use it as a condition of the index.
create index conversation_summary_due_over_idx
on convo.conversation (
    tenant_id,
    (case when policy is null then '' else policy end), -- noqa: ST02
    summary_due_over
);

-- For list_stale_summaries.
create index conversation_stale_seq_idx
on convo.conversation (tenant_id, conversation_id)
where stale_seq is not null;

comment on table convo.conversation is
'One row a conversation. Its row lock orders the writers, its counter gives seq.';
comment on column convo.conversation.tenant_id is 'The tenant.';
comment on column convo.conversation.conversation_id is 'UUID, version 7 by default.';
comment on column convo.conversation.user_id is 'The owner.';
comment on column convo.conversation.title is 'A title, at most 1,000 characters.';
comment on column convo.conversation.system_prompt_sha256 is
'The system prompt, in table prompt.';
comment on column convo.conversation.retention_class is
'Names the tenant''s retention rule for it.';
comment on column convo.conversation.policy is
'Names the tenant''s context policy for it; null: the default.';
comment on column convo.conversation.last_seq is
'The seq of the newest message ever stored, deleted ones too.';
comment on column convo.conversation.message_count is 'Live messages.';
comment on column convo.conversation.token_total is 'Tokens of live messages.';
comment on column convo.conversation.body_count is
'Live messages that are neither system ones nor summarised.';
comment on column convo.conversation.body_tokens is
'Tokens of live messages that are neither system ones nor summarised.';
comment on column convo.conversation.summary_through_seq is
'What the newest summary covers: messages with this group_seq or less. 0: none.';
comment on column convo.conversation.is_on_hold is
'On legal hold: can''t be deleted, purged or erased.';
comment on column convo.conversation.metadata is
'The application''s own data, an object of at most 64 KiB.';
comment on column convo.conversation.created_at is 'When it was created.';
comment on column convo.conversation.updated_at is
'When the conversation or its messages last changed; never goes back.';
comment on column convo.conversation.archived_at is
'When it was archived; null: it is not.';
comment on column convo.conversation.forked_from is
'The conversation it was forked from, which may be gone.';
comment on column convo.conversation.forked_at_seq is
'The seq of the last message that the fork copied.';
comment on column convo.conversation.edit_count is
'How many edits there were, which tells replays what a message said when.';
comment on column convo.conversation.summary_due_over is
'A summary is not due while body_tokens is no more; the greatest bigint: look again.';
comment on column convo.conversation.summary_leased_until is
'Until when a worker has it for a summary.';
comment on column convo.conversation.stale_seq is
'The first message that changed under the summary in use since it was saved.';
comment on column convo.conversation.changed_seq is
'The first message after the summary that changed while a worker had it.';
comment on index convo.conversation_user_id_system_prompt_sha256_idx is
'One user''s conversations; conversations that use a prompt.';
comment on index convo.conversation_retention_class_created_at_idx is
'What may be due for the purge.';
comment on index convo.conversation_summary_due_over_idx is
'Where a summary may be due.';
comment on index convo.conversation_stale_seq_idx is 'Stale summaries.';
