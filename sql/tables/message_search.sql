-- message_search: what full text search knows of each live message.
-- A row is written with its message and goes when it is deleted, so a search counts
-- nothing that is gone. Its table has no inverted index on purpose: a search reads the
-- rows of its own scope by the primary key and nothing else (docs/search.md says what
-- that costs), so nobody's postings are shared with another tenant, appends stay cheap,
-- and row security holds without a definer function.
create table convo.message_search (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    seq integer not null,
    user_id text collate "C" not null,
    is_from_user boolean not null,
    norm real not null,
    words tsvector not null,
    constraint message_search_pkey primary key (tenant_id, conversation_id, seq),
    constraint message_search_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint message_search_seq_check check (seq > 0),
    constraint message_search_norm_check check (norm >= 1),
    constraint message_search_words_check check (pg_column_size(words) <= 1048576)
) with (toast_tuple_target = 8160); -- the words are read with every search

comment on table convo.message_search is
'The words of each live message, for full text search.';
comment on column convo.message_search.tenant_id is 'The tenant.';
comment on column convo.message_search.conversation_id is 'The conversation.';
comment on column convo.message_search.seq is 'The message.';
comment on column convo.message_search.user_id is 'The owner of the conversation.';
comment on column convo.message_search.is_from_user is
'Whether the message has role user.';
comment on column convo.message_search.norm is
'What its score is divided by: grows with the square root of its distinct words.';
comment on column convo.message_search.words is
'Its words as _search_words makes them.';
