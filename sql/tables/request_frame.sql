-- request_frame: what many requests of a conversation share, stored once by its hash.
create table convo.request_frame (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    frame_id uuid not null,
    user_id text collate "C" not null,
    format text not null,
    model text,
    policy text not null,
    rules jsonb not null,
    renderer integer not null,
    parts text[] not null,
    constraint request_frame_pkey primary key (tenant_id, conversation_id, frame_id),
    constraint request_frame_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint request_frame_format_check check (
        format in ('openai', 'openai_responses', 'anthropic', 'gemini')
    ),
    constraint request_frame_model_check check (length(model) between 1 and 255),
    constraint request_frame_policy_check check (length(policy) between 1 and 63),
    constraint request_frame_rules_check check (
        jsonb_typeof(rules) = 'object' and pg_column_size(rules) <= 16384
    ),
    constraint request_frame_parts_check check (pg_column_size(parts) <= 1024),
    constraint request_frame_renderer_check check (renderer > 0)
);

comment on table convo.request_frame is
'What many requests of a conversation share: format, model, policy, renderer.';
comment on column convo.request_frame.tenant_id is 'The tenant.';
comment on column convo.request_frame.conversation_id is 'The conversation.';
comment on column convo.request_frame.frame_id is
'The first 16 bytes of the SHA-256 of the frame and its texts.';
comment on column convo.request_frame.user_id is 'The owner of the conversation.';
comment on column convo.request_frame.format is 'The format of the body.';
comment on column convo.request_frame.model is 'The model asked; null: none was named.';
comment on column convo.request_frame.policy is 'The name of the policy that counted.';
comment on column convo.request_frame.rules is 'The values of that policy then.';
comment on column convo.request_frame.parts is
'The parts that it has in table request_prompt.';
comment on column convo.request_frame.renderer is
'The number of the renderer that wrote the body.';
