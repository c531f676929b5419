-- request_prompt: the shared texts that a frame of requests was made with.
create table convo.request_prompt (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    frame_id uuid not null,
    part text not null,
    user_id text collate "C" not null,
    sha256 bytea not null,
    constraint request_prompt_pkey
    primary key (tenant_id, conversation_id, frame_id, part),
    constraint request_prompt_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint request_prompt_prompt_fkey
    foreign key (tenant_id, user_id, sha256)
    references convo.prompt (tenant_id, user_id, sha256) deferrable,
    constraint request_prompt_part_check check (
        part in ('system', 'memory', 'parameters', 'tools')
    ),
    constraint request_prompt_sha256_check check (length(sha256) = 32)
);

-- For the foreign key: whether a text is in use.
create index request_prompt_user_id_sha256_idx
on convo.request_prompt (tenant_id, user_id, sha256);

comment on table convo.request_prompt is
'Which texts of table prompt a frame of requests was made with.';
comment on column convo.request_prompt.tenant_id is 'The tenant.';
comment on column convo.request_prompt.conversation_id is 'The conversation.';
comment on column convo.request_prompt.frame_id is 'The frame.';
comment on column convo.request_prompt.part is
'What it is: the system prompt, memories, parameters, or the tools in them.';
comment on column convo.request_prompt.user_id is 'The owner of the conversation.';
comment on column convo.request_prompt.sha256 is 'The text, in table prompt.';
comment on index convo.request_prompt_user_id_sha256_idx is
'Whether a text is in use.';
