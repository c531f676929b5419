-- message: one row a message, in the order of seq within its conversation.
create table convo.message (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    seq integer not null,
    user_id text collate "C" not null,
    role text not null,
    content text,
    payload json,
    format text,
    tokens integer not null,
    is_estimated boolean not null,
    is_empty boolean not null,
    group_seq integer not null,
    revision integer not null default 1,
    model text,
    call_ids text[],
    result_ids text[],
    metadata jsonb not null default '{}',
    created_at timestamptz(3) not null,
    edited_at timestamptz(3),
    deleted_at timestamptz(3),
    words tsvector,
    words_norm real,
    constraint message_pkey primary key (tenant_id, conversation_id, seq),
    -- deferrable for transfer_conversation, which changes both sides
    constraint message_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint message_seq_check check (seq > 0),
    constraint message_role_check check (
        role in ('system', 'user', 'assistant', 'tool')
    ),
    -- pg_column_size and octet_length look at sizes only, they detoast nothing
    constraint message_content_check check (octet_length(content) <= 67108864),
    constraint message_payload_check check (pg_column_size(payload) <= 67108864),
    constraint message_format_check check (
        format in ('openai', 'openai_responses', 'anthropic', 'gemini')
        and (format is null) = (payload is null)
    ),
    constraint message_tokens_check check (tokens >= 0),
    constraint message_group_seq_check check (group_seq between 1 and seq),
    constraint message_revision_check check (revision > 0),
    constraint message_model_check check (length(model) between 1 and 255),
    constraint message_call_ids_check check (pg_column_size(call_ids) <= 1048576),
    constraint message_result_ids_check check (pg_column_size(result_ids) <= 1048576),
    constraint message_metadata_check check (
        jsonb_typeof(metadata) = 'object' and pg_column_size(metadata) <= 65536
    ),
    constraint message_words_check check (pg_column_size(words) <= 2097152)
);

-- The next two are read backwards, newest first. Ascending, since a descending index
-- that grows at its left end splits its pages in halves.

-- The newest live messages, whatever was deleted at the end.
create index message_seq_idx
on convo.message (tenant_id, conversation_id, seq)
where deleted_at is null;

-- The token window.
create index message_group_seq_idx
on convo.message (tenant_id, conversation_id, group_seq)
where deleted_at is null and role <> 'system';

-- The live system messages, which every context holds.
create index message_system_idx
on convo.message (tenant_id, conversation_id, seq)
where role = 'system' and deleted_at is null;

-- The newest live calls, for the results that come in.
create index message_call_ids_idx
on convo.message (tenant_id, conversation_id, seq)
where call_ids is not null and deleted_at is null;

comment on table convo.message is
'One row a message. A seq is never reused; edits keep old versions elsewhere.';
comment on column convo.message.tenant_id is 'The tenant.';
comment on column convo.message.conversation_id is 'The conversation.';
comment on column convo.message.seq is 'Its place: 1, 2, 3 ... without gaps.';
comment on column convo.message.user_id is 'The owner of the conversation.';
comment on column convo.message.role is 'system, user, assistant or tool.';
comment on column convo.message.content is
'Its text; null where it has none. U+FFFD stands for what text can''t hold.';
comment on column convo.message.payload is
'The provider''s own JSON, byte for byte. Clean it before reading it as jsonb.';
comment on column convo.message.format is 'The provider format of the payload.';
comment on column convo.message.tokens is 'Tokens, given or estimated.';
comment on column convo.message.is_estimated is 'Whether tokens is an estimate.';
comment on column convo.message.is_empty is
'Whether it says nothing beside results: no text but white space, no call or media.';
comment on column convo.message.group_seq is
'The seq of the first message that it must stand together with, else its own.';
comment on column convo.message.revision is '1, and one more with each edit.';
comment on column convo.message.model is 'The model that wrote it.';
comment on column convo.message.call_ids is 'The ids of the tool calls in it.';
comment on column convo.message.result_ids is
'The ids of the calls that the results in it answer.';
comment on column convo.message.metadata is
'The application''s own data, an object of at most 64 KiB.';
comment on column convo.message.created_at is
'When it was stored; never before the message before it.';
comment on column convo.message.edited_at is 'When it was last edited.';
comment on column convo.message.deleted_at is 'When it was softly deleted.';
comment on column convo.message.words is
'The words of its text, for search; null: made when they are searched.';
comment on column convo.message.words_norm is
'What its score is divided by in a search.';
comment on index convo.message_seq_idx is 'Live messages in order.';
comment on index convo.message_group_seq_idx is
'Live messages but system ones, in order of their groups.';
comment on index convo.message_system_idx is 'Live system messages.';
comment on index convo.message_call_ids_idx is 'Live messages with calls.';
