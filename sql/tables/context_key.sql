-- context_key: the keys that context tokens are signed with.
create table convo_private.context_key (
    key_id text collate "C" not null,
    secret bytea not null,
    expires_at timestamptz(3),
    constraint context_key_pkey primary key (key_id),
    constraint context_key_key_id_check check (
        length(key_id) <= 63 and key_id ~ '^[A-Za-z0-9_-]+$'
    ),
    -- HMAC-SHA256 asks for 32 bytes at least, and hashes what is over 64
    constraint context_key_secret_check check (length(secret) between 32 and 64)
);

comment on table convo_private.context_key is
'The keys that context tokens are signed with, for the owner, the verifier and dumps.';
comment on column convo_private.context_key.key_id is
'Names the key in a token. To change keys, add one and let the old one expire.';
comment on column convo_private.context_key.secret is '32 to 64 random bytes.';
comment on column convo_private.context_key.expires_at is
'From then on it verifies nothing; null: never.';
