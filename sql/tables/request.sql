-- request: what was sent to a model, by reference; a row has under 300 bytes.
create table convo.request (
    tenant_id text collate "C" not null,
    request_id uuid not null,
    conversation_id uuid not null,
    -- no foreign key: frames go when their conversation goes, as requests do
    frame_id uuid not null,
    created_at timestamptz(3) not null,
    finished_at timestamptz(3),
    token_count integer not null,
    summary_seq integer,
    edit_count integer not null,
    first_answer_seq integer,
    last_answer_seq integer,
    user_id text collate "C" not null,
    body_sha256 bytea not null,
    messages int4multirange not null,
    recalled int4multirange,
    response_sha256 bytea,
    error text,
    summary_version integer,
    constraint request_pkey primary key (tenant_id, request_id),
    constraint request_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint request_finished_at_check check (
        (finished_at is null) = (coalesce(response_sha256::text, error) is null)
    ),
    constraint request_token_count_check check (token_count >= 0),
    constraint request_body_sha256_check check (length(body_sha256) = 32),
    constraint request_response_sha256_check check (length(response_sha256) = 32),
    constraint request_messages_check check (pg_column_size(messages) <= 1048576),
    constraint request_recalled_check check (pg_column_size(recalled) <= 1048576),
    constraint request_error_check check (length(error) <= 2000)
) with (fillfactor = 95); -- room for the outcome

-- A conversation's requests by time, and the foreign key.
create index request_conversation_id_created_at_idx
on convo.request (tenant_id, conversation_id, created_at);

comment on table convo.request is
'What was sent to a model: which messages, in which frame, and the hash of the bytes.';
comment on column convo.request.tenant_id is 'The tenant.';
comment on column convo.request.request_id is 'UUID, version 7.';
comment on column convo.request.conversation_id is 'The conversation.';
comment on column convo.request.frame_id is 'The frame, in table request_frame.';
comment on column convo.request.created_at is 'When it was prepared.';
comment on column convo.request.finished_at is 'When it was completed, or last failed.';
comment on column convo.request.token_count is
'What the body was reckoned to cost in tokens, tools included.';
comment on column convo.request.summary_seq is
'The through_seq of the summary in it; null: none.';
comment on column convo.request.edit_count is
'The edits of the conversation before it.';
comment on column convo.request.first_answer_seq is 'The first message of the answer.';
comment on column convo.request.last_answer_seq is 'The last message of the answer.';
comment on column convo.request.user_id is 'The owner of the conversation.';
comment on column convo.request.body_sha256 is 'SHA-256 of the body in UTF-8.';
comment on column convo.request.messages is
'The seqs of its messages, system messages too.';
comment on column convo.request.recalled is 'The seqs of recalled messages.';
comment on column convo.request.response_sha256 is
'SHA-256 of the response that completed it, so that a retry stores nothing twice.';
comment on column convo.request.error is
'Why it last failed, at most 2,000 characters.';
comment on column convo.request.summary_version is
'Which version of that summary; null: the first.';
comment on index convo.request_conversation_id_created_at_idx is
'A conversation''s requests by time.';
