-- prompt: texts that many conversations share, stored once per user by their hash.
create table convo.prompt (
    tenant_id text collate "C" not null,
    user_id text collate "C" not null,
    sha256 bytea not null,
    content text not null,
    tokens integer not null,
    created_at timestamptz(3) not null default clock_timestamp(),
    constraint prompt_pkey primary key (tenant_id, user_id, sha256),
    constraint prompt_tokens_check check (tokens >= 0),
    constraint prompt_sha256_check check (length(sha256) = 32),
    constraint prompt_content_check check (
        octet_length(content) between 1 and 16777216
    ),
    constraint prompt_tenant_id_check check (length(tenant_id) between 1 and 255),
    constraint prompt_user_id_check check (length(user_id) between 1 and 255)
);

comment on table convo.prompt is
'System prompts, content-addressed per user. Gone when nothing refers to it.';
comment on column convo.prompt.tenant_id is 'The tenant.';
comment on column convo.prompt.user_id is 'The user whose conversations use it.';
comment on column convo.prompt.sha256 is 'SHA-256 of the text in UTF-8.';
comment on column convo.prompt.content is 'The text, at most 16 MiB.';
comment on column convo.prompt.tokens is 'Its estimated tokens.';
comment on column convo.prompt.created_at is 'When it was first stored.';
