-- message_revision: what edited messages said before.
create table convo.message_revision (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    seq integer not null,
    revision integer not null,
    user_id text collate "C" not null,
    content text,
    payload json,
    tokens integer not null,
    is_estimated boolean not null,
    created_at timestamptz(3) not null,
    edit_number integer not null default 0,
    constraint message_revision_pkey
    primary key (tenant_id, conversation_id, seq, revision),
    constraint message_revision_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint message_revision_revision_check check (revision > 0),
    constraint message_revision_content_check check (octet_length(content) <= 67108864),
    constraint message_revision_payload_check check (
        pg_column_size(payload) <= 67108864
    ),
    constraint message_revision_tokens_check check (tokens >= 0)
);

comment on table convo.message_revision is
'Superseded versions of messages; the current one is in table message.';
comment on column convo.message_revision.tenant_id is 'The tenant.';
comment on column convo.message_revision.conversation_id is 'The conversation.';
comment on column convo.message_revision.seq is 'The message.';
comment on column convo.message_revision.revision is 'The version, from 1.';
comment on column convo.message_revision.user_id is 'The owner of the conversation.';
comment on column convo.message_revision.content is 'The text of that version.';
comment on column convo.message_revision.payload is 'The payload of that version.';
comment on column convo.message_revision.tokens is 'The tokens of that version.';
comment on column convo.message_revision.is_estimated is
'Whether tokens is an estimate.';
comment on column convo.message_revision.created_at is
'When that version was written.';
comment on column convo.message_revision.edit_number is
'The edit of the conversation that superseded it; 0: one before edits had numbers.';
