-- 0002_turns: requests that can be replayed, and what they cost.
-- phase: expand
-- locks: ACCESS EXCLUSIVE on conversation and message_revision, to add columns; SHARE ROW
--        EXCLUSIVE on prompt, for a foreign key; all short
-- migrate:up

set local lock_timeout = '5s';
set local convo.migration = '0002_turns';
set local standard_conforming_strings = on;

-- Outside a transaction the line above had no effect. Then the guard below fails, and
-- nothing after it may change anything, even where a client goes on after an error.
do $guard$
begin
    if current_setting('convo.migration', true) is distinct from '0002_turns' then
        set default_transaction_read_only = on;
    end if;
end
$guard$;

do $guard$
declare
    caller constant text := current_setting('role');
    ledger_owner name;
    newest integer := 0;
    is_applied boolean := false;
begin
    if current_setting('convo.migration', true) is distinct from '0002_turns' then
        raise exception using
            errcode = 'PC092',
            message = 'migration not in one transaction',
            detail = '{"version": 2}',
            hint = 'Connect again and run psql with -1, or use pgconvo migrate.';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('pgconvo migration', 0));

    -- Only its owner and the groups may read the ledger, so look as the owner.
    select pg_get_userbyid(c.relowner) into ledger_owner
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
    where n.nspname = 'convo' and c.relname = 'schema_migration';
    if ledger_owner is not null then
        if not pg_has_role(current_user, ledger_owner, 'member') then
            raise insufficient_privilege using
                message = 'only a member of the owner may migrate',
                detail = json_build_object('owner', ledger_owner)::text,
                hint = 'Connect as the role that installed the schema.';
        end if;
        perform set_config('role', ledger_owner, true);
        select
            coalesce(max(m.version), 0),
            coalesce(bool_or(m.version = 2), false)
        into newest, is_applied
        from convo.schema_migration as m
        where m.track = 'core';
        perform set_config('role', caller, true);
    end if;

    if is_applied then
        raise exception using
            errcode = 'PC090',
            message = 'migration applied already',
            detail = json_build_object('version', 2, 'newest', newest)::text,
            hint = 'Leave this file out.';
    elsif newest <> 2 - 1 then
        raise exception using
            errcode = 'PC091',
            message = 'migration out of order',
            detail = json_build_object('version', 2, 'newest', newest)::text,
            hint = 'Apply the file that follows the newest one first.';
    end if;
end
$guard$;

set local role convo_owner;

-- >>> sql/types/request_record.sql
-- request_record: a request as the functions give it.
create type convo.request_record as (
    request_id uuid,
    conversation_id uuid,
    format text,
    model text,
    policy text,
    body text,
    body_sha256 bytea,
    token_count integer,
    first_seq integer,
    last_seq integer,
    status text,
    created_at timestamptz(3),
    finished_at timestamptz(3),
    renderer integer
);

comment on type convo.request_record is
'What was sent to a model; body is null in lists. status: prepared, completed, failed.';
-- <<< sql/types/request_record.sql

-- >>> sql/types/answer.sql
-- _answer: what a provider's response says, whatever its format.
create type convo._answer as (
    messages json,
    model text,
    finish_reason text,
    is_truncated boolean,
    usage json
);

comment on type convo._answer is
'A provider''s response: its messages as JSON array, and what is said about them.';
-- <<< sql/types/answer.sql

-- >>> sql/types/usage_buckets.sql
-- _usage_buckets: the tokens of a call, each in one bucket only.
create type convo._usage_buckets as (
    input_tokens bigint,
    cache_read_tokens bigint,
    cache_write_5m_tokens bigint,
    cache_write_1h_tokens bigint,
    output_tokens bigint,
    reasoning_tokens bigint
);

comment on type convo._usage_buckets is
'The tokens of a call, each in one bucket only.';
-- <<< sql/types/usage_buckets.sql

-- >>> sql/functions/identity/_fail.sql
-- _fail: raises one of the toolkit's errors, so that each has one wording.
-- in: the SQLSTATE, and ids and numbers for DETAIL, never content
-- errors: always
create or replace function convo._fail(code text, detail jsonb) returns void
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message text;
    hint text;
begin
    select e.message, e.hint into message, hint
    from (values
        ('PC001', 'conversation not found',
            'Check the id, and that the context names the tenant and user who own it.'),
        ('PC002', 'message not found',
            'Check seq with list_messages.'),
        ('PC003', 'request not found',
            'Check the id, and that the context names the tenant and user who own it.'),
        ('PC010', 'changed by somebody else',
            'Read the current state, then try again with the current value.'),
        ('PC011', 'idempotency key or request id used for other content',
            'Use a new key for each append, and prepare a request for each answer.'),
        ('PC012', 'conversation was deleted',
            'Create a new conversation; an id is never used again.'),
        ('PC013', 'conversation id is taken',
            'Leave conversation_id out and let the database make one.'),
        ('PC020', 'what must be kept does not fit the budget',
            'Raise the budget, or append a user message if there is none.'),
        ('PC030', 'no tenant or user set',
            'Call set_context in the same transaction.'),
        ('PC040', 'conversation is on legal hold',
            'Ask for release_conversation, then try again.'),
        ('PC050', 'message not valid in its format',
            'Send the message as the provider documents it.'),
        ('PC060', 'request can not be replayed exactly any more',
            'Look in DETAIL for what was erased since; nothing brings it back.'),
        ('22023', 'invalid argument',
            'See the function''s comment for the values it takes.'),
        ('42501', 'not allowed',
            'Use a role that may do this.')
    ) as e (code, message, hint)
    where e.code = _fail.code;

    raise exception using
        errcode = _fail.code, message = message, detail = _fail.detail::text, hint = hint;
end
$$;

comment on function convo._fail(text, jsonb) is
'Raises the error of a code with constant MESSAGE and HINT.';
revoke execute on function convo._fail(text, jsonb) from public;
grant execute on function convo._fail(text, jsonb)
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
-- <<< sql/functions/identity/_fail.sql

-- >>> sql/functions/identity/_require_format.sql
-- _require_format: refuses a name that isn't one of a provider's format.
-- errors: 22023
create or replace function convo._require_format(format text) returns void
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    formats constant text[] := array[
        'openai', 'openai_responses', 'anthropic', 'gemini'
    ];
begin
    if (_require_format.format = any (formats)) is not true then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'format', 'allowed', formats
        ));
    end if;
end
$$;

comment on function convo._require_format(text) is
'Refuses a name that isn''t one of a provider''s format.';
revoke execute on function convo._require_format(text) from public;
grant execute on function convo._require_format(text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/identity/_require_format.sql

-- === sql/tables/conversation.sql 5b639ec0f46e935e
alter table convo.conversation add column edit_count integer not null default 0;
comment on column convo.conversation.edit_count is
'How many edits there were, which tells replays what a message said when.';
-- <<< sql/tables/conversation.sql

-- === sql/tables/message_revision.sql 43213f618cf6f83c
alter table convo.message_revision
add column edit_number integer not null default 0;
comment on column convo.message_revision.edit_number is
'The edit of the conversation that superseded it; 0: one before edits had numbers.';
-- <<< sql/tables/message_revision.sql

-- >>> sql/tables/request_frame.sql
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
-- <<< sql/tables/request_frame.sql

-- >>> sql/tables/request_prompt.sql
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
-- <<< sql/tables/request_prompt.sql

-- >>> sql/tables/request.sql
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
comment on index convo.request_conversation_id_created_at_idx is
'A conversation''s requests by time.';
-- <<< sql/tables/request.sql

-- >>> sql/tables/usage.sql
-- usage: what each call to a model cost. Numbers and ids, no content.
-- No foreign keys: the bill outlives the conversation.
create table convo.usage (
    tenant_id text collate "C" not null,
    usage_id uuid not null,
    request_id uuid not null,
    conversation_id uuid not null,
    user_id text collate "C" not null,
    format text not null,
    model text,
    input_tokens bigint not null,
    cache_read_tokens bigint not null,
    cache_write_5m_tokens bigint not null,
    cache_write_1h_tokens bigint not null,
    output_tokens bigint not null,
    reasoning_tokens bigint not null,
    cost numeric,
    is_failed boolean not null,
    raw json,
    created_at timestamptz(3) not null,
    constraint usage_pkey primary key (tenant_id, usage_id),
    constraint usage_tenant_id_check check (length(tenant_id) between 1 and 255),
    constraint usage_user_id_check check (length(user_id) between 1 and 255),
    constraint usage_format_check check (
        format in ('openai', 'openai_responses', 'anthropic', 'gemini')
    ),
    constraint usage_model_check check (length(model) between 1 and 255),
    -- Bounds, so that nobody's own row spoils the sums of a tenant.
    constraint usage_tokens_check check (
        least(
            input_tokens, cache_read_tokens, cache_write_5m_tokens,
            cache_write_1h_tokens, output_tokens, reasoning_tokens
        ) >= 0
        and greatest(
            input_tokens, cache_read_tokens, cache_write_5m_tokens,
            cache_write_1h_tokens, output_tokens, reasoning_tokens
        ) <= 1000000000000000
    ),
    constraint usage_cost_check check (cost >= 0 and cost <= 1e18),
    constraint usage_created_at_check check (
        created_at between '2000-01-01 UTC' and '2999-12-31 UTC'
    ),
    constraint usage_raw_check check (octet_length(raw::text) <= 16384)
);

create index usage_conversation_id_idx on convo.usage (tenant_id, conversation_id);

comment on table convo.usage is
'What each call to a model used and cost. The buckets are disjoint: none counts what '
'another does.';
comment on column convo.usage.tenant_id is 'The tenant.';
comment on column convo.usage.usage_id is 'UUID, version 7.';
comment on column convo.usage.request_id is 'The request that it answers.';
comment on column convo.usage.conversation_id is 'Its conversation, which may be gone.';
comment on column convo.usage.user_id is 'The owner of the conversation then.';
comment on column convo.usage.format is 'The format of the request.';
comment on column convo.usage.model is 'The model that answered, as it names itself.';
comment on column convo.usage.input_tokens is 'Input that no cache served or stored.';
comment on column convo.usage.cache_read_tokens is 'Input read from a cache.';
comment on column convo.usage.cache_write_5m_tokens is
'Input stored in a cache for five minutes, or for as long as a provider does.';
comment on column convo.usage.cache_write_1h_tokens is
'Input stored in a cache for an hour.';
comment on column convo.usage.output_tokens is 'Output other than reasoning.';
comment on column convo.usage.reasoning_tokens is
'Reasoning, where the provider tells it.';
comment on column convo.usage.cost is
'What it cost by the prices of its time; null: the model had no price.';
comment on column convo.usage.is_failed is 'Whether it gave no answer.';
comment on column convo.usage.raw is
'The provider''s own usage, byte for byte; null if over 16 KiB.';
comment on column convo.usage.created_at is 'When it was recorded.';
comment on index convo.usage_conversation_id_idx is 'What one conversation cost.';
-- <<< sql/tables/usage.sql

-- >>> sql/tables/model_price.sql
-- model_price: what models cost, from a time on. The same for all tenants.
create table convo.model_price (
    model text not null,
    effective_from timestamptz(3) not null,
    input_price numeric not null,
    cache_read_price numeric not null,
    cache_write_5m_price numeric not null,
    cache_write_1h_price numeric not null,
    output_price numeric not null,
    reasoning_price numeric not null,
    constraint model_price_pkey primary key (model, effective_from),
    constraint model_price_model_check check (length(model) between 1 and 255),
    constraint model_price_prices_check check (
        least(
            input_price, cache_read_price, cache_write_5m_price, cache_write_1h_price,
            output_price, reasoning_price
        ) >= 0
        and greatest(
            input_price, cache_read_price, cache_write_5m_price, cache_write_1h_price,
            output_price, reasoning_price
        ) < 'Infinity'
    )
);

comment on table convo.model_price is
'Prices of a million tokens, all in one currency, each valid from a time on until a '
'later one of the model.';
comment on column convo.model_price.model is
'The model as it names itself, with or without the date at the end of the name.';
comment on column convo.model_price.effective_from is 'Valid from then on.';
comment on column convo.model_price.input_price is 'A million tokens of input.';
comment on column convo.model_price.cache_read_price is
'A million tokens read from a cache.';
comment on column convo.model_price.cache_write_5m_price is
'A million tokens stored in a cache for five minutes.';
comment on column convo.model_price.cache_write_1h_price is
'A million tokens stored in a cache for an hour.';
comment on column convo.model_price.output_price is 'A million tokens of output.';
comment on column convo.model_price.reasoning_price is 'A million tokens of reasoning.';
-- <<< sql/tables/model_price.sql

-- === sql/policies/conversation.sql 212ebb7fc66de983
grant insert (edit_count), update (edit_count)
on convo.conversation to convo_app, convo_service;
-- <<< sql/policies/conversation.sql

-- >>> sql/policies/request_frame.sql
-- request_frame: as the conversations they belong to.
alter table convo.request_frame enable row level security;
alter table convo.request_frame force row level security;

create policy request_frame_tenant on convo.request_frame
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_frame_tenant on convo.request_frame is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy request_frame_own on convo.request_frame
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy request_frame_own on convo.request_frame is
'An application acts for one user.';

create policy request_frame_service on convo.request_frame
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_frame_service on convo.request_frame is
'Workers and support act for all users of the tenant.';

create policy request_frame_reader on convo.request_frame
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy request_frame_reader on convo.request_frame is
'Reports read the tenant.';

create policy request_frame_backup on convo.request_frame
for select to convo_backup using (true);
comment on policy request_frame_backup on convo.request_frame is
'A dump has every row.';

grant select, insert on convo.request_frame to convo_app, convo_service;
grant update (user_id) on convo.request_frame to convo_service;
grant select on convo.request_frame to convo_reader, convo_backup;
-- <<< sql/policies/request_frame.sql

-- >>> sql/policies/request_prompt.sql
-- request_prompt: as the conversations they belong to.
alter table convo.request_prompt enable row level security;
alter table convo.request_prompt force row level security;

create policy request_prompt_tenant on convo.request_prompt
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_prompt_tenant on convo.request_prompt is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy request_prompt_own on convo.request_prompt
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy request_prompt_own on convo.request_prompt is
'An application acts for one user.';

create policy request_prompt_service on convo.request_prompt
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_prompt_service on convo.request_prompt is
'Workers and support act for all users of the tenant.';

create policy request_prompt_reader on convo.request_prompt
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy request_prompt_reader on convo.request_prompt is
'Reports read the tenant.';

create policy request_prompt_backup on convo.request_prompt
for select to convo_backup using (true);
comment on policy request_prompt_backup on convo.request_prompt is
'A dump has every row.';

create policy request_prompt_purge on convo.request_prompt
for select to convo_maintainer using (
    exists (
        select
        from convo.conversation as c
        where c.tenant_id = request_prompt.tenant_id
            and c.conversation_id = request_prompt.conversation_id
    )
);
comment on policy request_prompt_purge on convo.request_prompt is
'The purge finds the texts of what is due.';

grant select, insert on convo.request_prompt to convo_app, convo_service;
grant update (user_id) on convo.request_prompt to convo_service;
grant select on convo.request_prompt to convo_reader, convo_backup;
grant select (tenant_id, conversation_id, user_id, sha256)
on convo.request_prompt to convo_maintainer;
-- <<< sql/policies/request_prompt.sql

-- >>> sql/policies/request.sql
-- request: as the conversations they belong to.
alter table convo.request enable row level security;
alter table convo.request force row level security;

create policy request_tenant on convo.request
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_tenant on convo.request is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy request_own on convo.request
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy request_own on convo.request is
'An application acts for one user.';

create policy request_service on convo.request
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_service on convo.request is
'Workers and support act for all users of the tenant.';

create policy request_reader on convo.request
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy request_reader on convo.request is
'Reports read the tenant.';

create policy request_backup on convo.request
for select to convo_backup using (true);
comment on policy request_backup on convo.request is
'A dump has every row.';

grant select, insert on convo.request to convo_app, convo_service;
grant update (
    finished_at, first_answer_seq, last_answer_seq, response_sha256, error
) on convo.request to convo_app, convo_service;
grant update (user_id) on convo.request to convo_service;
grant select on convo.request to convo_reader, convo_backup;
-- <<< sql/policies/request.sql

-- >>> sql/policies/usage.sql
-- usage: recorded with a request, and never changed.
alter table convo.usage enable row level security;
alter table convo.usage force row level security;

create policy usage_tenant on convo.usage
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy usage_tenant on convo.usage is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy usage_own on convo.usage
for select to convo_app
using (user_id = (select convo.current_user_id()));
comment on policy usage_own on convo.usage is
'An application acts for one user.';

create policy usage_own_insert on convo.usage
for insert to convo_app
with check (
    user_id = (select convo.current_user_id())
    and exists (
        select
        from convo.request as r
        where r.tenant_id = usage.tenant_id
            and r.request_id = usage.request_id
            and r.conversation_id = usage.conversation_id
    )
);
comment on policy usage_own_insert on convo.usage is
'What a request of the user cost, and nothing else.';

create policy usage_service on convo.usage
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy usage_service on convo.usage is
'Workers and support act for all users of the tenant.';

create policy usage_reader on convo.usage
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy usage_reader on convo.usage is
'Reports read the tenant.';

create policy usage_backup on convo.usage
for select to convo_backup using (true);
comment on policy usage_backup on convo.usage is
'A dump has every row.';

grant select, insert on convo.usage to convo_app, convo_service;
grant select on convo.usage to convo_reader, convo_backup;
-- <<< sql/policies/usage.sql

-- >>> sql/policies/model_price.sql
-- model_price: everybody reads it; the owner writes it, since a tenant's own login must
-- not change what others are billed.
alter table convo.model_price enable row level security;
alter table convo.model_price force row level security;

create policy model_price_owner on convo.model_price
for all to convo_owner using (true) with check (true);
comment on policy model_price_owner on convo.model_price is
'Prices are loaded by a member of the owner.';

create policy model_price_group on convo.model_price
for select to convo_app, convo_service, convo_reader, convo_backup using (true);
comment on policy model_price_group on convo.model_price is
'Prices are no secret, and recording usage needs them.';

grant select on convo.model_price
to convo_app, convo_service, convo_reader, convo_backup;
-- <<< sql/policies/model_price.sql

-- >>> sql/functions/conversation/_collect_prompt.sql
-- _collect_prompt: deletes a shared text if nothing refers to it any more.
-- The foreign keys decide: where one still refers to it, the deletion is undone.
create or replace function convo._collect_prompt(tenant_id text, user_id text, sha256 bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if _collect_prompt.sha256 is null or exists (
        select
        from convo.conversation as c
        where c.tenant_id = _collect_prompt.tenant_id
            and c.user_id = _collect_prompt.user_id
            and c.system_prompt_sha256 = _collect_prompt.sha256
    ) or exists (
        select
        from convo.request_prompt as r
        where r.tenant_id = _collect_prompt.tenant_id
            and r.user_id = _collect_prompt.user_id
            and r.sha256 = _collect_prompt.sha256
    ) then
        return;
    end if;
    delete from convo.prompt as p
    where p.tenant_id = _collect_prompt.tenant_id
        and p.user_id = _collect_prompt.user_id
        and p.sha256 = _collect_prompt.sha256;
exception when foreign_key_violation or deadlock_detected then
    -- Used by a row that this role or snapshot doesn't see; or two conversations swap
    -- their prompts, and each transaction would wait for the other.
    null;
end
$$;

comment on function convo._collect_prompt(text, text, bytea) is
'Deletes a shared text if nothing refers to it any more.';
revoke execute on function convo._collect_prompt(text, text, bytea) from public;
grant execute on function convo._collect_prompt(text, text, bytea)
to convo_app, convo_service, convo_maintainer;
-- <<< sql/functions/conversation/_collect_prompt.sql

-- >>> sql/functions/conversation/list_conversations.sql
-- list_conversations: a page of conversations, newest activity first.
-- in: before_at and before_id: updated_at and id of the last row of the page before
-- errors: PC030, 22023
-- since: 0.1.0
create or replace function convo.list_conversations(
    before_at timestamptz default null,
    before_id uuid default null,
    include_archived boolean default false,
    page_size integer default 30
) returns setof convo.conversation_record
language sql stable rows 30
begin atomic
    select
        c.conversation_id,
        c.user_id,
        c.title,
        p.content as system_prompt,
        c.retention_class,
        c.policy,
        c.last_seq,
        c.message_count,
        c.token_total,
        c.metadata,
        c.created_at,
        c.updated_at,
        c.archived_at,
        c.is_on_hold,
        c.forked_from,
        c.forked_at_seq
    from (
        -- by name: s.* would have to be made anew with each new column
        select
            s.tenant_id,
            s.conversation_id,
            s.user_id,
            s.title,
            s.system_prompt_sha256,
            s.retention_class,
            s.policy,
            s.last_seq,
            s.message_count,
            s.token_total,
            s.metadata,
            s.created_at,
            s.updated_at,
            s.archived_at,
            s.is_on_hold,
            s.forked_from,
            s.forked_at_seq
        from convo.conversation as s
        where s.tenant_id = (select convo._require_tenant())
            and (list_conversations.include_archived or s.archived_at is null)
            and (
                num_nonnulls(
                    list_conversations.before_at, list_conversations.before_id
                ) = 0
                or s.updated_at < list_conversations.before_at
                or s.updated_at = list_conversations.before_at
                and s.conversation_id < list_conversations.before_id
            )
        order by s.updated_at desc, s.conversation_id desc
        limit convo._size('page_size', list_conversations.page_size, 1000)
    ) as c
    left join convo.prompt as p
        on p.tenant_id = c.tenant_id
            and p.user_id = c.user_id
            and p.sha256 = c.system_prompt_sha256
    order by c.updated_at desc, c.conversation_id desc;
end;

comment on function convo.list_conversations(timestamptz, uuid, boolean, integer) is
'A page of the caller''s conversations, newest activity first. The next page: give '
'updated_at and conversation_id of the last row.';
revoke execute on function convo.list_conversations(
    timestamptz, uuid, boolean, integer
) from public;
grant execute on function convo.list_conversations(timestamptz, uuid, boolean, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/conversation/list_conversations.sql

-- >>> sql/functions/conversation/delete_conversation.sql
-- delete_conversation: removes a conversation and all that belongs to it, for good.
-- out: whether there was one
-- errors: PC040 on legal hold
-- locks: the conversation row, FOR UPDATE
-- since: 0.1.0
create or replace function convo.delete_conversation(conversation_id uuid) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    old convo.conversation;
    texts bytea[];
begin
    select c.* into old
    from convo.conversation as c
    where c.tenant_id = tenant
        and c.conversation_id = delete_conversation.conversation_id
    for update;
    if not found then
        return false;
    elsif old.is_on_hold then
        perform convo._fail(
            'PC040', jsonb_build_object('conversation_id', old.conversation_id)
        );
    end if;
    texts := array(
        select r.sha256
        from convo.request_prompt as r
        where r.tenant_id = tenant and r.conversation_id = old.conversation_id
        union
        select old.system_prompt_sha256
    );
    delete from convo.conversation as c
    where c.tenant_id = tenant and c.conversation_id = old.conversation_id;
    insert into convo.tombstone (tenant_id, conversation_id, user_id)
    values (tenant, old.conversation_id, old.user_id)
    on conflict do nothing; -- by direct SQL, before its time
    perform convo._collect_prompt(tenant, old.user_id, t.sha256)
    from unnest(texts) as t (sha256);
    return true;
end
$$;

comment on function convo.delete_conversation(uuid) is
'Removes a conversation and all that belongs to it, for good. Gives whether there was '
'one. A tombstone stays, so that a late writer brings nothing back.';
revoke execute on function convo.delete_conversation(uuid) from public;
grant execute on function convo.delete_conversation(uuid) to convo_app, convo_service;
-- <<< sql/functions/conversation/delete_conversation.sql

-- >>> sql/functions/conversation/fork_conversation.sql
-- fork_conversation: a new conversation of the same owner that begins as this one does.
-- in: the last message to copy (null: all), a title (null: the same)
-- out: the new id; messages keep seq and time, deleted ones and old revisions come along
-- errors: PC001, PC012, PC002 no such message (0 copies none)
-- since: 0.1.0
create or replace function convo.fork_conversation(
    conversation_id uuid,
    through_seq integer default null,
    title text default null
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant convo.conversation := convo._lock_conversation(
        fork_conversation.conversation_id
    );
    last_copied constant integer := coalesce(
        fork_conversation.through_seq, source.last_seq
    );
    id constant uuid := convo._uuid_v7();
    instant constant timestamptz(3) := greatest(clock_timestamp(), source.updated_at);
    covered_seq integer;
begin
    if last_copied not between 0 and source.last_seq then
        perform convo._fail('PC002', jsonb_build_object(
            'conversation_id', source.conversation_id, 'seq', last_copied,
            'last_seq', source.last_seq
        ));
    end if;
    select coalesce(max(s.through_seq), 0) into covered_seq
    from convo.summary as s
    where s.tenant_id = source.tenant_id
        and s.conversation_id = source.conversation_id
        and s.through_seq <= last_copied;
    insert into convo.conversation (
        tenant_id, conversation_id, user_id, title, system_prompt_sha256,
        retention_class, policy, last_seq, message_count, token_total, body_count,
        body_tokens, summary_through_seq, metadata, created_at, updated_at, forked_from,
        forked_at_seq, edit_count
    )
    select
        source.tenant_id, id, source.user_id,
        nullif(coalesce(fork_conversation.title, source.title), ''),
        source.system_prompt_sha256, source.retention_class, source.policy, last_copied,
        count(*), coalesce(sum(m.tokens), 0),
        count(*) filter (where m.role <> 'system' and m.group_seq > covered_seq),
        coalesce(
            sum(m.tokens) filter (where m.role <> 'system' and m.group_seq > covered_seq),
            0
        ),
        covered_seq, source.metadata, instant, instant, source.conversation_id,
        last_copied, source.edit_count
    from convo.message as m
    where m.tenant_id = source.tenant_id
        and m.conversation_id = source.conversation_id
        and m.seq <= last_copied
        and m.deleted_at is null;

    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, payload, format,
        tokens, is_estimated, is_empty, group_seq, revision, model, call_ids, result_ids,
        metadata, created_at, edited_at, deleted_at
    )
    select
        m.tenant_id, id, m.seq, m.user_id, m.role, m.content, m.payload, m.format,
        m.tokens, m.is_estimated, m.is_empty, m.group_seq, m.revision, m.model,
        m.call_ids, m.result_ids, m.metadata, m.created_at, m.edited_at, m.deleted_at
    from convo.message as m
    where m.tenant_id = source.tenant_id
        and m.conversation_id = source.conversation_id
        and m.seq <= last_copied;

    insert into convo.message_revision (
        tenant_id, conversation_id, seq, revision, user_id, content, payload, tokens,
        is_estimated, created_at, edit_number
    )
    select
        r.tenant_id, id, r.seq, r.revision, r.user_id, r.content, r.payload, r.tokens,
        r.is_estimated, r.created_at, r.edit_number
    from convo.message_revision as r
    where r.tenant_id = source.tenant_id
        and r.conversation_id = source.conversation_id
        and r.seq <= last_copied;

    insert into convo.summary (
        tenant_id, conversation_id, through_seq, user_id, content, tokens, model,
        created_at
    )
    select
        s.tenant_id, id, s.through_seq, s.user_id, s.content, s.tokens, s.model,
        s.created_at
    from convo.summary as s
    where s.tenant_id = source.tenant_id
        and s.conversation_id = source.conversation_id
        and s.through_seq <= last_copied;
    return id;
end
$$;

comment on function convo.fork_conversation(uuid, integer, text) is
'A new conversation of the same owner that begins as this one does, up to a message. '
'Messages keep their seq and time, summaries come along; holds and idempotency keys '
'stay behind.';
revoke execute on function convo.fork_conversation(uuid, integer, text) from public;
grant execute on function convo.fork_conversation(uuid, integer, text)
to convo_app, convo_service;
-- <<< sql/functions/conversation/fork_conversation.sql

-- >>> sql/functions/conversation/transfer_conversation.sql
-- transfer_conversation: gives a conversation to another user of the tenant.
-- errors: PC001, PC012, 22023
-- locks: the conversation row, FOR UPDATE
-- since: 0.1.0
create or replace function convo.transfer_conversation(conversation_id uuid, to_user_id text)
returns convo.conversation_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    old constant convo.conversation := convo._lock_conversation(
        transfer_conversation.conversation_id
    );
    prompt text;
    texts bytea[];
    result convo.conversation_record;
begin
    if coalesce(length(transfer_conversation.to_user_id), 0) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'to_user_id', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    -- those who prepare a request hold it FOR KEY SHARE: after them
    perform
    from convo.conversation as c
    where c.tenant_id = old.tenant_id and c.conversation_id = old.conversation_id
    for update;
    texts := array(
        select r.sha256
        from convo.request_prompt as r
        where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id
        union
        select old.system_prompt_sha256
    );
    select r.system_prompt into prompt
    from convo.get_conversation(old.conversation_id) as r;

    set constraints
        convo.message_conversation_fkey,
        convo.message_revision_conversation_fkey,
        convo.summary_conversation_fkey,
        convo.idempotency_key_conversation_fkey,
        convo.request_conversation_fkey,
        convo.request_frame_conversation_fkey,
        convo.request_prompt_conversation_fkey deferred;
    update convo.conversation as c
    set user_id = transfer_conversation.to_user_id,
        system_prompt_sha256 = convo._store_prompt(
            transfer_conversation.to_user_id, prompt
        )
    where c.tenant_id = old.tenant_id and c.conversation_id = old.conversation_id;
    update convo.message as m
    set user_id = transfer_conversation.to_user_id
    where m.tenant_id = old.tenant_id and m.conversation_id = old.conversation_id;
    update convo.message_revision as r
    set user_id = transfer_conversation.to_user_id
    where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id;
    update convo.summary as s
    set user_id = transfer_conversation.to_user_id
    where s.tenant_id = old.tenant_id and s.conversation_id = old.conversation_id;
    update convo.idempotency_key as k
    set user_id = transfer_conversation.to_user_id
    where k.tenant_id = old.tenant_id and k.conversation_id = old.conversation_id;
    update convo.request as r
    set user_id = transfer_conversation.to_user_id
    where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id;
    update convo.request_frame as f
    set user_id = transfer_conversation.to_user_id
    where f.tenant_id = old.tenant_id and f.conversation_id = old.conversation_id;
    perform convo._store_prompt(transfer_conversation.to_user_id, p.content)
    from convo.prompt as p
    where p.tenant_id = old.tenant_id
        and p.user_id = old.user_id
        and p.sha256 = any (texts);
    update convo.request_prompt as r
    set user_id = transfer_conversation.to_user_id
    where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id;
    set constraints
        convo.message_conversation_fkey,
        convo.message_revision_conversation_fkey,
        convo.summary_conversation_fkey,
        convo.idempotency_key_conversation_fkey,
        convo.request_conversation_fkey,
        convo.request_frame_conversation_fkey,
        convo.request_prompt_conversation_fkey immediate;

    perform convo._collect_prompt(old.tenant_id, old.user_id, t.sha256)
    from unnest(texts) as t (sha256);
    perform convo_private._audit('transfer', old.conversation_id, null);
    select r.* into result from convo.get_conversation(old.conversation_id) as r;
    return result;
end
$$;

comment on function convo.transfer_conversation(uuid, text) is
'Gives a conversation, with all that belongs to it, to another user of the tenant.';
revoke execute on function convo.transfer_conversation(uuid, text) from public;
grant execute on function convo.transfer_conversation(uuid, text) to convo_service;
-- <<< sql/functions/conversation/transfer_conversation.sql

-- >>> sql/functions/message/_read_messages.sql
-- _read_messages: reads one message or an array of them.
-- in: the format, the JSON, and tokens for each (null, or null for one: estimated)
-- errors: 22023, PC050
create or replace function convo._read_messages(format text, messages json, tokens integer[])
returns convo._parsed_message[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    batch json := _read_messages.messages;
    element json;
    parsed convo._parsed_message[] := '{}';
    message convo._parsed_message;
begin
    if batch is null then
        perform convo._fail('22023', '{"argument": "messages", "reason": "missing"}');
    end if;
    perform convo._require_format(_read_messages.format);
    if json_typeof(batch) <> 'array' then
        batch := json_build_array(batch);
    end if;
    -- json_array_elements splits an array without touching a byte of its elements.
    for element in select e.value from json_array_elements(batch) as e loop
        message := convo._read_message(
            _read_messages.format, element, cardinality(parsed)
        );
        message.tokens := coalesce(
            _read_messages.tokens[cardinality(parsed) + 1], message.tokens
        );
        parsed := parsed || message;
    end loop;
    if cardinality(_read_messages.tokens) <> cardinality(parsed)
        or array_ndims(_read_messages.tokens) > 1
        or array_lower(_read_messages.tokens, 1) <> 1
        or 0 > any (_read_messages.tokens)
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'tokens', 'length', cardinality(parsed), 'minimum', 0
        ));
    end if;
    return parsed;
end
$$;

comment on function convo._read_messages(text, json, integer[]) is
'Reads one message of a provider''s format or an array of them.';
revoke execute on function convo._read_messages(text, json, integer[]) from public;
grant execute on function convo._read_messages(text, json, integer[])
to convo_app, convo_service;
-- <<< sql/functions/message/_read_messages.sql

-- >>> sql/functions/message/_store_messages.sql
-- _store_messages: adds messages that were read, and moves the counters.
-- in: the messages in their format, the tokens that were given (null: estimated), who
--     wrote the assistant's messages, metadata for each
-- out: the conversation as it is now; the messages are its last ones
-- errors: PC001, PC012, PC010, 23514
-- locks: the conversation row
create or replace function convo._store_messages(
    conversation_id uuid,
    format text,
    parsed convo._parsed_message[],
    tokens integer[],
    model text,
    expected_seq integer,
    metadata jsonb default '{}'
) returns convo.conversation
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    total record;
    conversation convo.conversation;
    first_seq integer;
    groups integer[];
begin
    select
        count(*)::integer as messages,
        coalesce(sum(p.tokens), 0) as tokens,
        count(*) filter (where p.role <> 'system') as body_messages,
        coalesce(sum(p.tokens) filter (where p.role <> 'system'), 0) as body_tokens
    into total
    from unnest(_store_messages.parsed) as p;

    conversation := convo._advance_conversation(
        _store_messages.conversation_id, total.messages, total.messages, total.tokens,
        total.body_messages, total.body_tokens, _store_messages.expected_seq
    );
    first_seq := conversation.last_seq - total.messages + 1;
    groups := convo._group_messages(
        conversation.conversation_id, _store_messages.format, _store_messages.parsed,
        first_seq
    );
    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, payload, format,
        tokens, is_estimated, is_empty, group_seq, model, call_ids, result_ids,
        metadata, created_at
    )
    select
        conversation.tenant_id, conversation.conversation_id, first_seq + p.n - 1,
        conversation.user_id, p.role, p.content, p.payload, _store_messages.format,
        p.tokens, _store_messages.tokens[p.n] is null, p.is_empty, p.group_seq,
        case when p.role = 'assistant' then nullif(_store_messages.model, '') end,
        p.call_ids, p.result_ids, _store_messages.metadata, conversation.updated_at
    from unnest(_store_messages.parsed, groups) with ordinality as p (
        role, content, payload, tokens, is_empty, call_ids, result_ids, group_seq, n
    );
    if conversation.summary_through_seq >= any (groups) then
        -- a result that joined a call which a summary covers
        perform convo._advance_conversation(
            conversation.conversation_id, 0, 0, 0, -count(*), -sum(p.tokens)
        )
        from unnest(_store_messages.parsed, groups) as p (
            role, content, payload, tokens, is_empty, call_ids, result_ids, group_seq
        )
        where p.group_seq <= conversation.summary_through_seq;
    end if;
    return conversation;
end
$$;

comment on function convo._store_messages(
    uuid, text, convo._parsed_message[], integer[], text, integer, jsonb
) is
'Adds messages that were read, and moves the counters.';
revoke execute on function convo._store_messages(
    uuid, text, convo._parsed_message[], integer[], text, integer, jsonb
) from public;
grant execute on function convo._store_messages(
    uuid, text, convo._parsed_message[], integer[], text, integer, jsonb
) to convo_app, convo_service;
-- <<< sql/functions/message/_store_messages.sql

-- >>> sql/functions/message/append_messages.sql
-- append_messages: adds messages in a provider's own shape, all or none.
-- in: one message or an array; format: openai (chat), openai_responses (items of input
--     or output), anthropic or gemini, whose system text is a message of role system;
--     tokens for each (null: estimated); model: who wrote the assistant's messages
-- out: the stored messages, or with a key used before the ones stored then, as they are
--      now; [] checks expected_seq, stores nothing and gives no row
-- errors: PC050 not valid in the format (DETAIL: index, reason), PC001, PC012,
--         PC010 expected_seq, PC011 key, 22023, 23514 too long
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create or replace function convo.append_messages(
    conversation_id uuid,
    messages json,
    format text default 'openai',
    tokens integer[] default null,
    model text default null,
    expected_seq integer default null,
    idempotency_key text default null
) returns setof convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    parsed convo._parsed_message[];
    hash bytea;
    earlier convo.idempotency_key;
    conversation convo.conversation;
    first_seq integer;
begin
    -- Everything is read before anything is locked.
    parsed := convo._read_messages(
        append_messages.format, append_messages.messages, append_messages.tokens
    );

    if append_messages.idempotency_key is not null then
        hash := sha256(convert_to(json_build_array(
            append_messages.format, append_messages.messages
        )::text, 'UTF8'));
        earlier := convo._find_append(
            append_messages.conversation_id, append_messages.idempotency_key, hash
        );
        if earlier.first_seq is not null then
            return query
            select (convo._message_record(m)).*
            from convo.message as m
            where m.tenant_id = earlier.tenant_id
                and m.conversation_id = earlier.conversation_id
                and m.seq between earlier.first_seq and earlier.last_seq
            order by m.seq;
            return;
        end if;
    end if;

    conversation := convo._store_messages(
        append_messages.conversation_id, append_messages.format, parsed,
        append_messages.tokens, append_messages.model, append_messages.expected_seq
    );
    first_seq := conversation.last_seq - cardinality(parsed) + 1;
    if hash is not null then
        insert into convo.idempotency_key (
            tenant_id, conversation_id, key, user_id, first_seq, last_seq, sha256,
            created_at
        )
        values (
            conversation.tenant_id, conversation.conversation_id,
            append_messages.idempotency_key, conversation.user_id, first_seq,
            conversation.last_seq, hash, conversation.updated_at
        );
    end if;
    return query
    select (convo._message_record(m)).*
    from convo.message as m
    where m.tenant_id = conversation.tenant_id
        and m.conversation_id = conversation.conversation_id
        and m.seq >= first_seq
    order by m.seq;
end
$$;

comment on function convo.append_messages(
    uuid, json, text, integer[], text, integer, text
) is
'Adds one message or an array of messages in a provider''s own shape, all or none. The '
'JSON is kept byte for byte; tool results join the call that they answer.';
revoke execute on function convo.append_messages(
    uuid, json, text, integer[], text, integer, text
) from public;
grant execute on function convo.append_messages(
    uuid, json, text, integer[], text, integer, text
) to convo_app, convo_service;
-- <<< sql/functions/message/append_messages.sql

-- >>> sql/functions/message/edit_message.sql
-- edit_message: replaces the text of a message; the old version stays a revision.
-- Calls and media stay as they are. tokens null: estimated anew.
-- errors: PC001, PC012, PC002 not there or deleted, PC010 expected_revision,
--         22023 (also for a message that has no text)
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create or replace function convo.edit_message(
    conversation_id uuid,
    seq integer,
    content text,
    tokens integer default null,
    expected_revision integer default null
) returns convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    conversation constant convo.conversation := convo._lock_conversation(
        edit_message.conversation_id
    );
    old constant convo.message := convo._find_message(conversation, edit_message.seq);
    new_payload json;
    parsed convo._parsed_message;
    token_count integer;
    message convo.message;
begin
    if old.deleted_at is not null then
        perform convo._fail('PC002', jsonb_build_object(
            'conversation_id', old.conversation_id, 'seq', old.seq
        ));
    elsif edit_message.content is null then
        perform convo._fail('22023', '{"argument": "content", "reason": "missing"}');
    elsif edit_message.tokens < 0 then
        perform convo._fail('22023', '{"argument": "tokens", "minimum": 0}');
    elsif old.content is null then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'seq', 'value', old.seq, 'reason', 'the message has no text'
        ));
    elsif edit_message.expected_revision <> old.revision then
        perform convo._fail('PC010', jsonb_build_object(
            'conversation_id', old.conversation_id, 'seq', old.seq,
            'expected_revision', edit_message.expected_revision,
            'revision', old.revision
        ));
    end if;

    new_payload := convo._replace_text(old.format, old.payload, edit_message.content);
    parsed := convo._read_message(old.format, new_payload, 0);
    token_count := coalesce(
        edit_message.tokens, parsed.tokens, convo.estimate_tokens(edit_message.content)
    );
    insert into convo.message_revision (
        tenant_id, conversation_id, seq, revision, user_id, content, payload, tokens,
        is_estimated, created_at, edit_number
    )
    values (
        old.tenant_id, old.conversation_id, old.seq, old.revision, old.user_id,
        old.content, old.payload, old.tokens, old.is_estimated,
        coalesce(old.edited_at, old.created_at), conversation.edit_count + 1
    );
    update convo.conversation as c
    set edit_count = c.edit_count + 1
    where c.tenant_id = old.tenant_id and c.conversation_id = old.conversation_id;
    update convo.message as m
    set content = edit_message.content,
        payload = new_payload,
        tokens = token_count,
        is_estimated = edit_message.tokens is null,
        is_empty = coalesce(parsed.is_empty, convo._is_blank(edit_message.content)),
        revision = old.revision + 1,
        edited_at = clock_timestamp()
    where m.tenant_id = old.tenant_id
        and m.conversation_id = old.conversation_id
        and m.seq = old.seq
    returning m.* into message;
    perform convo._advance_conversation(
        old.conversation_id, 0, 0, token_count - old.tokens, 0,
        case
            when old.role <> 'system'
                and old.group_seq > conversation.summary_through_seq
                then token_count - old.tokens
            else 0
        end
    );
    return convo._message_record(message);
end
$$;

comment on function convo.edit_message(uuid, integer, text, integer, integer) is
'Replaces the text of a message, keeps its calls and media, and keeps the old version '
'as a revision.';
revoke execute on function convo.edit_message(uuid, integer, text, integer, integer)
from public;
grant execute on function convo.edit_message(uuid, integer, text, integer, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/edit_message.sql

-- >>> sql/functions/context/_summary_items.sql
-- _summary_items: a summary as it is sent: an exchange, or a part of the system text.
-- in: the summary, and the policy's summary_placement
-- out: messages in order of place
create or replace function convo._summary_items(content text, tokens integer, placement text)
returns table (role text, content text, tokens integer, place integer)
language sql immutable parallel safe
begin atomic
    select
        'user',
        'Summarize our conversation so far.',
        6,
        1
    where _summary_items.placement = 'exchange'
    union all
    select
        case
            when _summary_items.placement = 'exchange' then 'assistant' else 'system'
        end,
        _summary_items.content,
        _summary_items.tokens,
        2;
end;

comment on function convo._summary_items(text, integer, text) is
'A summary as it is sent: an exchange, or a part of the system text.';
revoke execute on function convo._summary_items(text, integer, text) from public;
grant execute on function convo._summary_items(text, integer, text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_summary_items.sql

-- >>> sql/functions/context/_fixed_items.sql
-- _fixed_items: what stands before the window of a context, and comes off its budget.
-- in: the conversation, where the summary goes, what it covers (0: no summary)
-- out: the system prompt, the system messages, the summary
create or replace function convo._fixed_items(
    conversation convo.conversation, summary_placement text, covered_seq integer
) returns setof convo._context_item
language sql stable
begin atomic
    select
        'system',
        null::integer,
        'system',
        p.content,
        p.tokens,
        1,
        0,
        null::text
    from convo.prompt as p
    where p.tenant_id = (_fixed_items.conversation).tenant_id
        and p.user_id = (_fixed_items.conversation).user_id
        and p.sha256 = (_fixed_items.conversation).system_prompt_sha256
    union all
    select
        'system',
        m.seq,
        m.role,
        m.content,
        m.tokens,
        2,
        m.seq as group_seq,
        case when m.is_empty then 'empty' end
    from convo.message as m
    where m.tenant_id = (_fixed_items.conversation).tenant_id
        and m.conversation_id = (_fixed_items.conversation).conversation_id
        and m.role = 'system'
        and m.deleted_at is null
    union all
    select
        'summary',
        s.through_seq,
        e.role,
        e.content,
        e.tokens,
        3,
        e.place,
        null::text
    from convo.summary as s
    cross join
        lateral
        convo._summary_items(s.content, s.tokens, _fixed_items.summary_placement) as e
    where s.tenant_id = (_fixed_items.conversation).tenant_id
        and s.conversation_id = (_fixed_items.conversation).conversation_id
        and s.through_seq = _fixed_items.covered_seq;
end;

comment on function convo._fixed_items(convo.conversation, text, integer) is
'What stands before the window of a context: system prompt and messages, summary.';
revoke execute on function convo._fixed_items(convo.conversation, text, integer)
from public;
grant execute on function convo._fixed_items(convo.conversation, text, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_fixed_items.sql

-- >>> sql/functions/context/_considered_items.sql
-- _considered_items: what was considered for a context, in the order it would be sent in.
-- in: as get_context; tokens of the budget that go elsewhere; whether to explain: then
--     everything, else little more than is kept
-- out: items with their section (1 system prompt, 2 system messages, 3 summary,
--      4 messages), and a reason where left out
-- errors: PC001, PC012, PC020, PC030, 22023
create or replace function convo._considered_items(
    conversation_id uuid,
    policy text,
    token_budget integer,
    reserved_tokens integer,
    is_explained boolean
) returns setof convo._context_item
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    conversation convo.conversation;
    rule convo.policy_record;
    overhead bigint;
    fixed convo._context_item[];
    fixed_tokens bigint;
    body_tokens bigint;
    covered_seq integer := 0;
    scanned convo._group_member[];
begin
    perform convo._size(
        'token_budget', coalesce(_considered_items.token_budget, 0), 2147483647
    );
    select c.* into conversation
    from convo.conversation as c
    where c.tenant_id = tenant and c.conversation_id = _considered_items.conversation_id;
    if not found then
        perform convo._fail_not_found(_considered_items.conversation_id);
    end if;
    rule := convo._resolve_policy(
        conversation, _considered_items.policy, _considered_items.token_budget
    );
    overhead := rule.message_overhead;
    if rule.strategy in ('summary', 'hybrid') then
        covered_seq := conversation.summary_through_seq;
    end if;

    fixed := array(
        select i
        from convo._fixed_items(conversation, rule.summary_placement, covered_seq) as i
    );
    select
        coalesce(sum(i.tokens + overhead) filter (where i.reason is null), 0)
            + _considered_items.reserved_tokens,
        conversation.token_total
            - coalesce(sum(i.tokens) filter (where i.section = 2), 0)
            + overhead
            * (conversation.message_count - count(*) filter (where i.section = 2))
    into fixed_tokens, body_tokens
    from unnest(fixed) as i;
    if covered_seq > 0 then
        body_tokens := conversation.body_tokens + overhead * conversation.body_count;
    end if;

    -- Not within the query below: joined to no message it might not be called at all.
    scanned := convo._context_window(
        conversation, rule, covered_seq, body_tokens, fixed_tokens,
        _considered_items.is_explained
    );
    return query
    select i.* from unnest(fixed) as i
    union all
    select 'message', m.seq, m.role, m.content, m.tokens, 4, m.group_seq, w.reason
    from unnest(scanned) as w
    -- one by one: a generic plan might join them to the whole conversation
    cross join lateral (
        select
            l.seq,
            l.role,
            l.content,
            l.tokens,
            l.group_seq
        from convo.message as l
        where l.tenant_id = tenant
            and l.conversation_id = conversation.conversation_id
            and l.seq = w.seq
        limit 1
    ) as m
    where _considered_items.is_explained or w.reason is null
    union all
    select
        'message', m.seq, m.role, m.content, m.tokens, 4, m.group_seq,
        case when m.deleted_at is not null then 'deleted' else 'summarised' end
    from convo.message as m
    where _considered_items.is_explained
        and m.tenant_id = tenant
        and m.conversation_id = conversation.conversation_id
        and (
            m.deleted_at is not null
            or m.role <> 'system' and m.group_seq <= covered_seq
        );
end
$$;

comment on function convo._considered_items(uuid, text, integer, integer, boolean) is
'What was considered for a context, and why something was left out.';
revoke execute on function convo._considered_items(
    uuid, text, integer, integer, boolean
) from public;
grant execute on function convo._considered_items(
    uuid, text, integer, integer, boolean
) to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_considered_items.sql

-- >>> sql/functions/context/get_context.sql
-- get_context: what should be sent to a model, by the rule that the policy declares.
-- System prompt, system messages and summary come first and off the budget. Then the
-- newest groups that fit, in chronological order, with the newest user message in front
-- if it lies before them. Calls without results, results without calls and messages that
-- say nothing are left out.
-- in: policy: a name, else the conversation's, the tenant's default, the built-in one;
--     token_budget: instead of the policy's
-- out: items in the order they are sent in; running_tokens adds up in that order
-- errors: PC001, PC012, PC020 (what must be kept doesn't fit, or there is no user
--     message: DETAIL has needed and available), PC030, 22023
-- since: 0.1.0
create or replace function convo.get_context(
    conversation_id uuid,
    policy text default null,
    token_budget integer default null
) returns setof convo.context_record
language sql stable rows 50
begin atomic
    select
        row_number() over w::integer as ordinal,
        i.kind,
        i.seq,
        i.role,
        i.content,
        i.tokens,
        sum(i.tokens) over w as running_tokens
    from convo._considered_items(
            get_context.conversation_id,
            get_context.policy,
            get_context.token_budget,
            0,
            false
        ) as i
    where i.reason is null
    window
        w as (
            order by i.section, i.group_seq, i.seq
            rows unbounded preceding
        )
    order by ordinal;
end;

comment on function convo.get_context(uuid, text, integer) is
'What should be sent to a model, item by item, by the rule that the policy declares. '
'Never empty: PC020 when what must be kept doesn''t fit the budget.';
revoke execute on function convo.get_context(uuid, text, integer) from public;
grant execute on function convo.get_context(uuid, text, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/get_context.sql

-- >>> sql/functions/context/explain_context.sql
-- explain_context: what get_context keeps, and why it leaves out the rest.
-- Reads the whole conversation.
-- in: as get_context
-- out: all items, in the order they would be sent in; running_tokens adds up the kept
-- errors: as get_context
-- since: 0.1.0
create or replace function convo.explain_context(
    conversation_id uuid,
    policy text default null,
    token_budget integer default null
) returns table (
    seq integer,
    role text,
    kind text,
    tokens integer,
    running_tokens bigint,
    is_kept boolean,
    reason text
)
language sql stable
begin atomic
    select
        i.seq,
        i.role,
        i.kind,
        i.tokens,
        case when i.reason is null then
                sum(i.tokens) filter (where i.reason is null) over (
                    order by i.section, i.group_seq, i.seq
                    rows unbounded preceding
                )
        end as running_tokens,
        i.reason is null as is_kept,
        coalesce(i.reason, 'kept') as reason
    from convo._considered_items(
            explain_context.conversation_id, explain_context.policy,
            explain_context.token_budget, 0, true
        ) as i
    order by i.section, i.group_seq, i.seq;
end;

comment on function convo.explain_context(uuid, text, integer) is
'What get_context keeps, and for everything else the reason why it is left out.';
revoke execute on function convo.explain_context(uuid, text, integer) from public;
grant execute on function convo.explain_context(uuid, text, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/explain_context.sql

-- >>> sql/functions/render/_renderer.sql
-- _renderer: the number of the renderer in use, see _render.
create or replace function convo._renderer() returns integer
language sql immutable parallel safe
begin atomic
    select 1;
end;

comment on function convo._renderer() is 'The number of the renderer in use.';
revoke execute on function convo._renderer() from public;
grant execute on function convo._renderer()
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_renderer.sql

-- >>> sql/functions/render/_render.sql
-- _render: a context as a provider's JSON, by the renderer of a number.
-- What would write other bytes than before gets a new number, and the old one stays:
-- requests that it made are replayed with it.
-- out: as render_context
-- errors: PC060 a renderer that isn't here, of a later version
create or replace function convo._render(
    renderer integer, format text, items convo._render_item[]
) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if _render.renderer <> 1 then
        perform convo._fail(
            'PC060', jsonb_build_object('renderer', _render.renderer)
        );
    end if;
    return case _render.format
        when 'openai' then convo._render_openai(_render.items)
        when 'openai_responses' then convo._render_openai_responses(_render.items)
        when 'anthropic' then convo._render_anthropic(_render.items)
        else convo._render_gemini(_render.items)
    end;
end
$$;

comment on function convo._render(integer, text, convo._render_item[]) is
'A context as a provider''s JSON, by the renderer of a number.';
revoke execute on function convo._render(integer, text, convo._render_item[])
from public;
grant execute on function convo._render(integer, text, convo._render_item[])
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_render.sql

-- >>> sql/functions/render/render_context.sql
-- render_context: a context as the provider's own JSON, in an order that it takes.
-- A message stored in that format is there byte for byte; others are converted part by
-- part. Signatures, encrypted reasoning and call ids go only to the provider that made
-- them.
-- in: format openai, openai_responses, anthropic or gemini; the rest as get_context
-- out: openai: chat messages; openai_responses: input items; anthropic: {system,
--      messages}; gemini: {systemInstruction, contents}
-- errors: 22023 unknown format, and those of get_context
-- since: 0.1.0
create or replace function convo.render_context(
    conversation_id uuid,
    format text,
    policy text default null,
    token_budget integer default null
) returns json
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    items convo._render_item[];
begin
    perform convo._require_format(render_context.format);
    items := array(
        select row(
            c.kind, c.seq, m.group_seq, c.role, c.content, m.format, m.payload
        )::convo._render_item
        from convo.get_context(
            render_context.conversation_id, render_context.policy,
            render_context.token_budget
        ) as c
        -- one by one: a generic plan might join them to the whole conversation
        left join lateral (
            select
                l.group_seq,
                l.format,
                l.payload
            from convo.message as l
            where l.tenant_id = tenant
                and l.conversation_id = render_context.conversation_id
                and l.seq = c.seq
                and c.kind in ('system', 'recalled', 'message')
            limit 1
        ) as m on true
        order by c.ordinal
    );
    return convo._render(convo._renderer(), render_context.format, items);
end
$$;

comment on function convo.render_context(uuid, text, text, integer) is
'A context as the JSON of a provider: openai, openai_responses, anthropic or gemini.';
revoke execute on function convo.render_context(uuid, text, text, integer) from public;
grant execute on function convo.render_context(uuid, text, text, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/render_context.sql

-- >>> sql/functions/usage/_token_count.sql
-- _token_count: a number of tokens out of a provider's usage.
-- in: JSON of any kind, and the names that lead to it, of which any may be missing
-- out: what isn't a number of tokens counts as 0
create or replace function convo._token_count(usage jsonb, variadic path text[]) returns bigint
language sql immutable parallel safe
begin atomic
    select case
        when jsonb_typeof(_token_count.usage #> _token_count.path) = 'number'
            and (_token_count.usage #>> _token_count.path)::numeric between 0 and 1e12
            then trunc((_token_count.usage #>> _token_count.path)::numeric)::bigint
        else 0
    end;
end;

comment on function convo._token_count(jsonb, text[]) is
'A number of tokens out of a provider''s usage; 0 for what isn''t one.';
revoke execute on function convo._token_count(jsonb, text[]) from public;
grant execute on function convo._token_count(jsonb, text[])
to convo_app, convo_service;
-- <<< sql/functions/usage/_token_count.sql

-- >>> sql/functions/usage/_usage_of.sql
-- _usage_of: a provider's usage as disjoint buckets.
-- OpenAI and Gemini count cached input within the input, Anthropic apart from it. OpenAI
-- and Anthropic count reasoning within the output, Gemini apart from it, and so do others
-- with the API of OpenAI: what the total has beyond input and output is reasoning. A part
-- that is larger than its whole is cut down to it.
-- in: the format, and the usage of any shape, cleaned by _readable
create or replace function convo._usage_of(format text, usage jsonb)
returns convo._usage_buckets
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    u constant jsonb := _usage_of.usage;
    buckets convo._usage_buckets;
    all_input bigint;
    all_output bigint;
    apart bigint;
begin
    buckets.cache_write_5m_tokens := 0;
    buckets.cache_write_1h_tokens := 0;
    if _usage_of.format = 'anthropic' then
        buckets.input_tokens := convo._token_count(u, 'input_tokens');
        buckets.cache_read_tokens := convo._token_count(u, 'cache_read_input_tokens');
        buckets.cache_write_1h_tokens := convo._token_count(
            u, 'cache_creation', 'ephemeral_1h_input_tokens'
        );
        -- the total is older than its parts, which may be missing
        buckets.cache_write_5m_tokens := greatest(
            convo._token_count(u, 'cache_creation', 'ephemeral_5m_input_tokens'),
            convo._token_count(u, 'cache_creation_input_tokens')
                - buckets.cache_write_1h_tokens
        );
        all_output := convo._token_count(u, 'output_tokens');
        buckets.reasoning_tokens := least(all_output, convo._token_count(
            u, 'output_tokens_details', 'thinking_tokens'
        ));
        buckets.output_tokens := all_output - buckets.reasoning_tokens;
        return buckets;
    elsif _usage_of.format = 'gemini' then
        all_input := greatest(
            convo._token_count(u, 'promptTokenCount'),
            convo._token_count(u, 'prompt_token_count')
        );
        buckets.cache_read_tokens := least(all_input, greatest(
            convo._token_count(u, 'cachedContentTokenCount'),
            convo._token_count(u, 'cached_content_token_count')
        ));
        all_input := all_input + greatest(
            convo._token_count(u, 'toolUsePromptTokenCount'),
            convo._token_count(u, 'tool_use_prompt_token_count')
        );
        buckets.reasoning_tokens := greatest(
            convo._token_count(u, 'thoughtsTokenCount'),
            convo._token_count(u, 'thoughts_token_count')
        );
        buckets.output_tokens := greatest(
            convo._token_count(u, 'candidatesTokenCount'),
            convo._token_count(u, 'candidates_token_count')
        );
    else
        all_input := greatest(
            convo._token_count(u, 'prompt_tokens'),
            convo._token_count(u, 'input_tokens')
        );
        all_output := greatest(
            convo._token_count(u, 'completion_tokens'),
            convo._token_count(u, 'output_tokens')
        );
        buckets.cache_read_tokens := least(all_input, greatest(
            convo._token_count(u, 'prompt_tokens_details', 'cached_tokens'),
            convo._token_count(u, 'input_tokens_details', 'cached_tokens')
        ));
        apart := greatest(
            0, convo._token_count(u, 'total_tokens') - all_input - all_output
        );
        buckets.reasoning_tokens := apart + least(all_output, greatest(
            0,
            convo._token_count(u, 'completion_tokens_details', 'reasoning_tokens')
                - apart,
            convo._token_count(u, 'output_tokens_details', 'reasoning_tokens') - apart
        ));
        buckets.output_tokens := all_output + apart - buckets.reasoning_tokens;
        buckets.cache_write_5m_tokens := least(
            all_input - buckets.cache_read_tokens,
            greatest(
                convo._token_count(u, 'prompt_tokens_details', 'cache_write_tokens'),
                convo._token_count(u, 'input_tokens_details', 'cache_write_tokens')
            )
        );
    end if;
    buckets.input_tokens :=
        all_input - buckets.cache_read_tokens - buckets.cache_write_5m_tokens;
    return buckets;
end
$$;

comment on function convo._usage_of(text, jsonb) is
'A provider''s usage as disjoint buckets.';
revoke execute on function convo._usage_of(text, jsonb) from public;
grant execute on function convo._usage_of(text, jsonb) to convo_app, convo_service;
-- <<< sql/functions/usage/_usage_of.sql

-- >>> sql/functions/usage/_price_of.sql
-- _price_of: the price of a model at a time.
-- A name with a date at its end, as providers answer with, has the price of the name
-- without it, unless it has one of its own.
-- out: null where it has none
create or replace function convo._price_of(model text, at timestamptz) returns convo.model_price
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    price convo.model_price;
begin
    select p.* into price
    from convo.model_price as p
    where p.model in (
            _price_of.model,
            regexp_replace(
                _price_of.model,
                '-([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}|(0[1-9]|1[0-2])-([0-9]{2}|[0-9]{4})|latest)$', ''
            )
        )
        and p.effective_from <= _price_of.at
    order by length(p.model) desc, p.effective_from desc
    limit 1;
    return price;
end
$$;

comment on function convo._price_of(text, timestamptz) is
'The price of a model at a time, or null.';
revoke execute on function convo._price_of(text, timestamptz) from public;
grant execute on function convo._price_of(text, timestamptz)
to convo_app, convo_service;
-- <<< sql/functions/usage/_price_of.sql

-- >>> sql/functions/usage/_record_usage.sql
-- _record_usage: records what a call used, at the price of now.
-- in: the provider's usage; null: nothing is known of it, and nothing recorded. What
--     Anthropic lists beside its sums gets rows of its own.
create or replace function convo._record_usage(
    tenant_id text,
    request_id uuid,
    conversation_id uuid,
    user_id text,
    format text,
    model text,
    usage json,
    is_failed boolean
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    instant constant timestamptz(3) := clock_timestamp();
    readable jsonb;
begin
    if json_typeof(_record_usage.usage) is distinct from 'object' then
        return;
    end if;
    begin
        readable := convo._readable(_record_usage.usage);
    exception
        -- a number out of range, or too deep: nothing counts, and no answer is lost
        when numeric_value_out_of_range or statement_too_complex then
            readable := '{}';
    end;
    insert into convo.usage (
        tenant_id, usage_id, request_id, conversation_id, user_id, format, model,
        input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens,
        output_tokens, reasoning_tokens, cost, is_failed, raw, created_at
    )
    select
        _record_usage.tenant_id, convo._uuid_v7(), _record_usage.request_id,
        _record_usage.conversation_id, _record_usage.user_id, _record_usage.format,
        c.model, u.input_tokens, u.cache_read_tokens, u.cache_write_5m_tokens,
        u.cache_write_1h_tokens, u.output_tokens, u.reasoning_tokens,
        trim_scale((
            u.input_tokens * p.input_price
            + u.cache_read_tokens * p.cache_read_price
            + u.cache_write_5m_tokens * p.cache_write_5m_price
            + u.cache_write_1h_tokens * p.cache_write_1h_price
            + u.output_tokens * p.output_price
            + u.reasoning_tokens * p.reasoning_price
        ) * 0.000001),
        _record_usage.is_failed, c.raw, instant
    from (
        select
            _record_usage.model as model,
            readable as counts,
            case when octet_length(_record_usage.usage::text) <= 16384
                    then _record_usage.usage
            end as raw
        union all
        -- the other models' advice and the compaction that aren't in Anthropic's sums
        select
            coalesce(nullif(left(i.counts ->> 'model', 255), ''), _record_usage.model),
            i.counts, null
        from jsonb_path_query(
                readable,
                '$.iterations[*] ? (@.type == "advisor_message" || @.type == "compaction")'
            ) as i (counts)
        where _record_usage.format = 'anthropic'
    ) as c
    cross join lateral convo._usage_of(_record_usage.format, c.counts) as u
    cross join lateral convo._price_of(c.model, instant) as p;
end
$$;

comment on function convo._record_usage(
    text, uuid, uuid, text, text, text, json, boolean
) is
'Records what a call used, at the price of now.';
revoke execute on function convo._record_usage(
    text, uuid, uuid, text, text, text, json, boolean
) from public;
grant execute on function convo._record_usage(
    text, uuid, uuid, text, text, text, json, boolean
) to convo_app, convo_service;
-- <<< sql/functions/usage/_record_usage.sql

-- >>> sql/views/usage_by_conversation.sql
-- usage_by_conversation: what a conversation used and cost.
create or replace view convo.usage_by_conversation
with (security_invoker = true) as
select
    u.tenant_id,
    u.conversation_id,
    u.user_id,
    count(*) as calls,
    count(*) filter (where u.is_failed) as failed_calls,
    sum(u.input_tokens) as input_tokens,
    sum(u.cache_read_tokens) as cache_read_tokens,
    sum(u.cache_write_5m_tokens + u.cache_write_1h_tokens) as cache_write_tokens,
    sum(u.output_tokens) as output_tokens,
    sum(u.reasoning_tokens) as reasoning_tokens,
    sum(u.cost) as cost,
    count(*) filter (where u.cost is null) as unpriced_calls
from convo.usage as u
group by u.tenant_id, u.conversation_id, u.user_id;

comment on view convo.usage_by_conversation is
'What a conversation used and cost. cost adds up what has a price; unpriced_calls '
'counts the others.';
comment on column convo.usage_by_conversation.tenant_id is 'The tenant.';
comment on column convo.usage_by_conversation.conversation_id is
'The conversation, which may be gone.';
comment on column convo.usage_by_conversation.user_id is
'Its owner then.';
comment on column convo.usage_by_conversation.calls is
'Calls to a model, failed ones too.';
comment on column convo.usage_by_conversation.failed_calls is
'Calls that gave no answer.';
comment on column convo.usage_by_conversation.input_tokens is
'Input that no cache served or stored.';
comment on column convo.usage_by_conversation.cache_read_tokens is
'Input read from a cache.';
comment on column convo.usage_by_conversation.cache_write_tokens is
'Input stored in a cache.';
comment on column convo.usage_by_conversation.output_tokens is
'Output other than reasoning.';
comment on column convo.usage_by_conversation.reasoning_tokens is
'Reasoning that was counted apart.';
comment on column convo.usage_by_conversation.cost is
'What the calls with a price cost; null if none has one.';
comment on column convo.usage_by_conversation.unpriced_calls is
'Calls of models without a price.';

grant select on convo.usage_by_conversation to convo_service, convo_reader;
-- <<< sql/views/usage_by_conversation.sql

-- >>> sql/views/usage_by_user.sql
-- usage_by_user: what a user used and cost.
create or replace view convo.usage_by_user
with (security_invoker = true) as
select
    u.tenant_id,
    u.user_id,
    count(*) as calls,
    count(*) filter (where u.is_failed) as failed_calls,
    sum(u.input_tokens) as input_tokens,
    sum(u.cache_read_tokens) as cache_read_tokens,
    sum(u.cache_write_5m_tokens + u.cache_write_1h_tokens) as cache_write_tokens,
    sum(u.output_tokens) as output_tokens,
    sum(u.reasoning_tokens) as reasoning_tokens,
    sum(u.cost) as cost,
    count(*) filter (where u.cost is null) as unpriced_calls
from convo.usage as u
group by u.tenant_id, u.user_id;

comment on view convo.usage_by_user is
'What a user used and cost. cost adds up what has a price; unpriced_calls counts '
'the others.';
comment on column convo.usage_by_user.tenant_id is 'The tenant.';
comment on column convo.usage_by_user.user_id is
'The user.';
comment on column convo.usage_by_user.calls is
'Calls to a model, failed ones too.';
comment on column convo.usage_by_user.failed_calls is
'Calls that gave no answer.';
comment on column convo.usage_by_user.input_tokens is
'Input that no cache served or stored.';
comment on column convo.usage_by_user.cache_read_tokens is
'Input read from a cache.';
comment on column convo.usage_by_user.cache_write_tokens is
'Input stored in a cache.';
comment on column convo.usage_by_user.output_tokens is
'Output other than reasoning.';
comment on column convo.usage_by_user.reasoning_tokens is
'Reasoning that was counted apart.';
comment on column convo.usage_by_user.cost is
'What the calls with a price cost; null if none has one.';
comment on column convo.usage_by_user.unpriced_calls is
'Calls of models without a price.';

grant select on convo.usage_by_user to convo_service, convo_reader;
-- <<< sql/views/usage_by_user.sql

-- >>> sql/views/usage_by_tenant.sql
-- usage_by_tenant: what a tenant used and cost.
create or replace view convo.usage_by_tenant
with (security_invoker = true) as
select
    u.tenant_id,
    count(*) as calls,
    count(*) filter (where u.is_failed) as failed_calls,
    sum(u.input_tokens) as input_tokens,
    sum(u.cache_read_tokens) as cache_read_tokens,
    sum(u.cache_write_5m_tokens + u.cache_write_1h_tokens) as cache_write_tokens,
    sum(u.output_tokens) as output_tokens,
    sum(u.reasoning_tokens) as reasoning_tokens,
    sum(u.cost) as cost,
    count(*) filter (where u.cost is null) as unpriced_calls
from convo.usage as u
group by u.tenant_id;

comment on view convo.usage_by_tenant is
'What a tenant used and cost. cost adds up what has a price; unpriced_calls counts '
'the others.';
comment on column convo.usage_by_tenant.tenant_id is 'The tenant.';
comment on column convo.usage_by_tenant.calls is
'Calls to a model, failed ones too.';
comment on column convo.usage_by_tenant.failed_calls is
'Calls that gave no answer.';
comment on column convo.usage_by_tenant.input_tokens is
'Input that no cache served or stored.';
comment on column convo.usage_by_tenant.cache_read_tokens is
'Input read from a cache.';
comment on column convo.usage_by_tenant.cache_write_tokens is
'Input stored in a cache.';
comment on column convo.usage_by_tenant.output_tokens is
'Output other than reasoning.';
comment on column convo.usage_by_tenant.reasoning_tokens is
'Reasoning that was counted apart.';
comment on column convo.usage_by_tenant.cost is
'What the calls with a price cost; null if none has one.';
comment on column convo.usage_by_tenant.unpriced_calls is
'Calls of models without a price.';

grant select on convo.usage_by_tenant to convo_service, convo_reader;
-- <<< sql/views/usage_by_tenant.sql

-- >>> sql/views/usage_by_model.sql
-- usage_by_model: what a model used and cost.
create or replace view convo.usage_by_model
with (security_invoker = true) as
select
    u.tenant_id,
    u.model,
    count(*) as calls,
    count(*) filter (where u.is_failed) as failed_calls,
    sum(u.input_tokens) as input_tokens,
    sum(u.cache_read_tokens) as cache_read_tokens,
    sum(u.cache_write_5m_tokens + u.cache_write_1h_tokens) as cache_write_tokens,
    sum(u.output_tokens) as output_tokens,
    sum(u.reasoning_tokens) as reasoning_tokens,
    sum(u.cost) as cost,
    count(*) filter (where u.cost is null) as unpriced_calls
from convo.usage as u
group by u.tenant_id, u.model;

comment on view convo.usage_by_model is
'What a model used and cost. cost adds up what has a price; unpriced_calls counts '
'the others.';
comment on column convo.usage_by_model.tenant_id is 'The tenant.';
comment on column convo.usage_by_model.model is
'The model, as it names itself; null: not known.';
comment on column convo.usage_by_model.calls is
'Calls to a model, failed ones too.';
comment on column convo.usage_by_model.failed_calls is
'Calls that gave no answer.';
comment on column convo.usage_by_model.input_tokens is
'Input that no cache served or stored.';
comment on column convo.usage_by_model.cache_read_tokens is
'Input read from a cache.';
comment on column convo.usage_by_model.cache_write_tokens is
'Input stored in a cache.';
comment on column convo.usage_by_model.output_tokens is
'Output other than reasoning.';
comment on column convo.usage_by_model.reasoning_tokens is
'Reasoning that was counted apart.';
comment on column convo.usage_by_model.cost is
'What the calls with a price cost; null if none has one.';
comment on column convo.usage_by_model.unpriced_calls is
'Calls of models without a price.';

grant select on convo.usage_by_model to convo_service, convo_reader;
-- <<< sql/views/usage_by_model.sql

-- >>> sql/views/usage_by_day.sql
-- usage_by_day: what a day used and cost.
create or replace view convo.usage_by_day
with (security_invoker = true) as
select
    u.tenant_id,
    (u.created_at at time zone 'UTC')::date as day,
    count(*) as calls,
    count(*) filter (where u.is_failed) as failed_calls,
    sum(u.input_tokens) as input_tokens,
    sum(u.cache_read_tokens) as cache_read_tokens,
    sum(u.cache_write_5m_tokens + u.cache_write_1h_tokens) as cache_write_tokens,
    sum(u.output_tokens) as output_tokens,
    sum(u.reasoning_tokens) as reasoning_tokens,
    sum(u.cost) as cost,
    count(*) filter (where u.cost is null) as unpriced_calls
from convo.usage as u
group by u.tenant_id, (u.created_at at time zone 'UTC')::date;

comment on view convo.usage_by_day is
'What a day used and cost. cost adds up what has a price; unpriced_calls counts '
'the others.';
comment on column convo.usage_by_day.tenant_id is 'The tenant.';
comment on column convo.usage_by_day.day is
'The day, in UTC.';
comment on column convo.usage_by_day.calls is
'Calls to a model, failed ones too.';
comment on column convo.usage_by_day.failed_calls is
'Calls that gave no answer.';
comment on column convo.usage_by_day.input_tokens is
'Input that no cache served or stored.';
comment on column convo.usage_by_day.cache_read_tokens is
'Input read from a cache.';
comment on column convo.usage_by_day.cache_write_tokens is
'Input stored in a cache.';
comment on column convo.usage_by_day.output_tokens is
'Output other than reasoning.';
comment on column convo.usage_by_day.reasoning_tokens is
'Reasoning that was counted apart.';
comment on column convo.usage_by_day.cost is
'What the calls with a price cost; null if none has one.';
comment on column convo.usage_by_day.unpriced_calls is
'Calls of models without a price.';

grant select on convo.usage_by_day to convo_service, convo_reader;
-- <<< sql/views/usage_by_day.sql

-- >>> sql/functions/request/_require_request.sql
-- _require_request: a request that the caller may see.
-- errors: PC003
create or replace function convo._require_request(request_id uuid) returns convo.request
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request convo.request;
begin
    select r.* into request
    from convo.request as r
    where r.tenant_id = convo._require_tenant()
        and r.request_id = _require_request.request_id;
    if not found then
        perform convo._fail(
            'PC003', jsonb_build_object('request_id', _require_request.request_id)
        );
    end if;
    return request;
end
$$;

comment on function convo._require_request(uuid) is
'A request that the caller may see; PC003 if there is none.';
revoke execute on function convo._require_request(uuid) from public;
grant execute on function convo._require_request(uuid)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/request/_require_request.sql

-- >>> sql/functions/request/_lock_request.sql
-- _lock_request: a request, locked for its outcome to be stored.
-- Two workers with an outcome each come one after the other. The conversation is locked
-- first, as everywhere, so that nobody waits in a circle.
-- errors: PC003, PC001, PC012
-- locks: the conversation row, until the transaction ends
create or replace function convo._lock_request(request_id uuid) returns convo.request
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request convo.request := convo._require_request(_lock_request.request_id);
begin
    perform convo._lock_conversation(request.conversation_id);
    return convo._require_request(_lock_request.request_id);
end
$$;

comment on function convo._lock_request(uuid) is
'A request, with its conversation locked, for its outcome to be stored.';
revoke execute on function convo._lock_request(uuid) from public;
grant execute on function convo._lock_request(uuid) to convo_app, convo_service;
-- <<< sql/functions/request/_lock_request.sql

-- >>> sql/functions/request/_split_parameters.sql
-- _split_parameters: the parameters of a request without their tools, and the tools.
-- Tools are long and change rarely, so they are stored apart.
-- in: a JSON object; the members that hold the context itself can't be in it
-- out: the members, byte for byte and without the braces around them, and the tools;
--      null where there are none
-- errors: 22023
create or replace function convo._split_parameters(parameters json) returns text[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    reserved constant text[] := array[
        'model', 'messages', 'input', 'system', 'contents', 'systemInstruction',
        'system_instruction'
    ];
    hidden text[];
    object json;
    others text;
    found text;
begin
    if _split_parameters.parameters is null then
        return array[null, null];
    elsif json_typeof(_split_parameters.parameters) <> 'object' then
        perform convo._fail(
            '22023', '{"argument": "parameters", "reason": "not an object"}'
        );
    end if;
    hidden := convo._hide_escapes(_split_parameters.parameters::text);
    object := hidden[1]::json;
    select k.key into found
    from json_object_keys(object) as k (key)
    where k.key = any (reserved)
    limit 1;
    if found is not null then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'parameters', 'member', found,
            'reason', 'it is made of the conversation and the other arguments'
        ));
    end if;
    others := convo._json_without(object, array['tools'])::text;
    return array[
        nullif(convo._show_escapes(
            substr(others, 2, length(others) - 2), hidden[2:]
        ), ''),
        convo._show_escapes((object -> 'tools')::text, hidden[2:])
    ];
end
$$;

comment on function convo._split_parameters(json) is
'The parameters of a request without their tools, and the tools.';
revoke execute on function convo._split_parameters(json) from public;
grant execute on function convo._split_parameters(json) to convo_app, convo_service;
-- <<< sql/functions/request/_split_parameters.sql

-- >>> sql/functions/request/_request_texts.sql
-- _request_texts: the shared texts that a request was made with, by part.
create or replace function convo._request_texts(request convo.request)
returns table (part text, content text)
language sql stable rows 4
begin atomic
    select
        r.part,
        p.content
    from convo.request_prompt as r
    inner join convo.prompt as p
        on p.tenant_id = r.tenant_id
            and p.user_id = r.user_id
            and p.sha256 = r.sha256
    where r.tenant_id = (_request_texts.request).tenant_id
        and r.conversation_id = (_request_texts.request).conversation_id
        and r.frame_id = (_request_texts.request).frame_id;
end;

comment on function convo._request_texts(convo.request) is
'The shared texts that a request was made with, by part.';
revoke execute on function convo._request_texts(convo.request) from public;
grant execute on function convo._request_texts(convo.request)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/request/_request_texts.sql

-- >>> sql/functions/request/_request_items.sql
-- _request_items: the items of a request as they were when it was prepared.
-- in: the request, the summary_placement of its policy
-- errors: PC060 names what is gone
create or replace function convo._request_items(request convo.request, frame convo.request_frame)
returns convo._render_item[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    found record;
begin
    with numbered as (
        select k.kind, s.seq
        from (
            values
                ('message', (_request_items.request).messages),
                ('recalled', (_request_items.request).recalled)
        ) as k (kind, seqs)
        cross join lateral unnest(k.seqs) as r (span)
        cross join lateral generate_series(lower(r.span), upper(r.span) - 1) as s (seq)
    ),

    items as (
        select
            case when n.kind = 'recalled' then 5 when m.role = 'system' then 2 else 6 end
            as section,
            coalesce(m.group_seq, n.seq) as place,
            n.kind,
            n.seq,
            m.group_seq,
            m.role,
            m.content,
            m.format,
            m.payload,
            case when m.seq is null then n.seq end as missing_seq
        from numbered as n
        -- one by one: a generic plan might join them to the whole conversation
        left join lateral (
            select
                l.seq,
                l.group_seq,
                l.role,
                l.format,
                case when o.edit_number is null then l.content else o.content end
                as content,
                case when o.edit_number is null then l.payload else o.payload end
                as payload
            from convo.message as l
            -- what it said before the first edit since
            left join lateral (
                select
                    r.edit_number,
                    r.content,
                    r.payload
                from convo.message_revision as r
                where l.revision > 1
                    and r.tenant_id = l.tenant_id
                    and r.conversation_id = l.conversation_id
                    and r.seq = l.seq
                    and r.edit_number > (_request_items.request).edit_count
                order by r.revision
                limit 1
            ) as o on true
            where l.tenant_id = (_request_items.request).tenant_id
                and l.conversation_id = (_request_items.request).conversation_id
                and l.seq = n.seq
            limit 1
        ) as m on true
        union all
        select
            case when p.part = 'system' then 1 else 3 end,
            0,
            p.part,
            null,
            null,
            'system',
            p.content,
            null,
            null,
            null
        from convo._request_texts(_request_items.request) as p
        where p.part in ('system', 'memory')
        union all
        select
            4,
            e.place,
            'summary',
            s.through_seq,
            null,
            e.role,
            e.content,
            null,
            null,
            null
        from convo.summary as s
        cross join lateral convo._summary_items(
            s.content, s.tokens,
            (_request_items.frame).rules ->> 'summary_placement'
        ) as e
        where s.tenant_id = (_request_items.request).tenant_id
            and s.conversation_id = (_request_items.request).conversation_id
            and s.through_seq = (_request_items.request).summary_seq
    )

    select
        array_agg(
            row(
                i.kind, i.seq, i.group_seq, i.role, i.content, i.format, i.payload
            )::convo._render_item
            order by i.section, i.place, i.seq
        ) as items,
        array_agg(i.missing_seq order by i.seq) filter (
            where i.missing_seq is not null
        ) as missing_messages,
        case when count(*) filter (where i.kind = 'summary') = 0 then
                (_request_items.request).summary_seq
        end as missing_summary
    into found
    from items as i;
    if coalesce(found.missing_messages[1], found.missing_summary) is not null then
        perform convo._fail('PC060', jsonb_strip_nulls(jsonb_build_object(
            'request_id', (_request_items.request).request_id,
            'messages', found.missing_messages,
            'summary', found.missing_summary
        )));
    end if;
    return found.items;
end
$$;

comment on function convo._request_items(convo.request, convo.request_frame) is
'The items of a request as they were when it was prepared.';
revoke execute on function convo._request_items(convo.request, convo.request_frame)
from public;
grant execute on function convo._request_items(convo.request, convo.request_frame)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/request/_request_items.sql

-- >>> sql/functions/request/_request_body.sql
-- _request_body: the bytes of a request, made of what it refers to.
-- Both prepare_request and replay_request make them here, so that they are the same.
-- errors: PC060 names what is gone
create or replace function convo._request_body(request convo.request) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    frame convo.request_frame;
    parts text[];
    parameters text;
    tools text;
    context text;
begin
    select f.* into frame
    from convo.request_frame as f
    where f.tenant_id = (_request_body.request).tenant_id
        and f.conversation_id = (_request_body.request).conversation_id
        and f.frame_id = (_request_body.request).frame_id;
    select
        array_agg(t.part),
        min(t.content) filter (where t.part = 'parameters'),
        min(t.content) filter (where t.part = 'tools')
    into parts, parameters, tools
    from convo._request_texts(_request_body.request) as t;
    if not coalesce(parts, '{}') @> frame.parts then
        perform convo._fail('PC060', jsonb_build_object(
            'request_id', (_request_body.request).request_id,
            'texts', array(
                select p.part
                from unnest(frame.parts) as p (part)
                where array_position(parts, p.part) is null
                order by p.part
            )
        ));
    end if;

    context := convo._render(
        frame.renderer, frame.format,
        convo._request_items(_request_body.request, frame)
    );
    return '{' || concat_ws(
        ',',
        '"model":' || case when frame.format <> 'gemini' then
                to_json(frame.model)::text
        end,
        parameters,
        '"tools":' || tools,
        case frame.format
            when 'openai' then '"messages":' || context
            when 'openai_responses' then '"input":' || context
            else substr(context, 2, length(context) - 2)
        end
    ) || '}';
end
$$;

comment on function convo._request_body(convo.request) is
'The bytes of a request, made of what it refers to.';
revoke execute on function convo._request_body(convo.request) from public;
grant execute on function convo._request_body(convo.request)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/request/_request_body.sql

-- >>> sql/functions/request/_request_record.sql
-- _request_record: a request as the functions give it.
create or replace function convo._request_record(
    request convo.request, frame convo.request_frame, body text
) returns convo.request_record
language sql immutable parallel safe
begin atomic
    select
        row(
            (_request_record.request).request_id,
            (_request_record.request).conversation_id,
            (_request_record.frame).format,
            (_request_record.frame).model,
            (_request_record.frame).policy,
            _request_record.body,
            (_request_record.request).body_sha256,
            (_request_record.request).token_count,
            lower((_request_record.request).messages),
            upper((_request_record.request).messages) - 1,
            case
                when (_request_record.request).response_sha256 is not null
                    then 'completed'
                when (_request_record.request).finished_at is not null then 'failed'
                else 'prepared'
            end,
            (_request_record.request).created_at,
            (_request_record.request).finished_at,
            (_request_record.frame).renderer
        )::convo.request_record;
end;

comment on function convo._request_record(
    convo.request, convo.request_frame, text
) is
'A request as the functions give it.';
revoke execute on function convo._request_record(
    convo.request, convo.request_frame, text
) from public;
grant execute on function convo._request_record(
    convo.request, convo.request_frame, text
) to convo_app, convo_service, convo_reader;
-- <<< sql/functions/request/_request_record.sql

-- >>> sql/functions/request/_store_frame.sql
-- _store_frame: stores once what requests share.
-- in: the frame, without its id; its texts by part, in the order system, memory,
--     parameters, tools, null where there is none
-- out: the frame
create or replace function convo._store_frame(frame convo.request_frame, texts text[])
returns convo.request_frame
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    stored convo.request_frame := _store_frame.frame;
    names constant text[] := array['system', 'memory', 'parameters', 'tools'];
    hashes bytea[];
begin
    hashes := array(
        select convo._store_prompt(stored.user_id, t.text)
        from unnest(_store_frame.texts) with ordinality as t (text, n)
        order by t.n
    );
    stored.parts := array(
        select names[h.n]
        from unnest(hashes) with ordinality as h (hash, n)
        where h.hash is not null
        order by h.n
    );
    stored.frame_id := substr(encode(sha256(convert_to(
        jsonb_build_array(stored, hashes)::text, 'UTF8'
    )), 'hex'), 1, 32)::uuid;

    insert into convo.request_frame (
        tenant_id, conversation_id, frame_id, user_id, format, model, policy, rules,
        renderer, parts
    )
    values (
        stored.tenant_id, stored.conversation_id, stored.frame_id, stored.user_id,
        stored.format, stored.model, stored.policy, stored.rules, stored.renderer,
        stored.parts
    )
    on conflict do nothing;
    insert into convo.request_prompt (
        tenant_id, conversation_id, frame_id, part, user_id, sha256
    )
    select
        stored.tenant_id, stored.conversation_id, stored.frame_id, names[h.n],
        stored.user_id, h.hash
    from unnest(hashes) with ordinality as h (hash, n)
    where h.hash is not null
    on conflict do nothing;
    return stored;
end
$$;

comment on function convo._store_frame(convo.request_frame, text[]) is
'Stores once what requests of a conversation share.';
revoke execute on function convo._store_frame(convo.request_frame, text[]) from public;
grant execute on function convo._store_frame(convo.request_frame, text[])
to convo_app, convo_service;
-- <<< sql/functions/request/_store_frame.sql

-- >>> sql/functions/request/prepare_request.sql
-- prepare_request: what is to be sent to a model, and a record that gives it again.
-- The record refers to messages, summary and texts, so it is small; the body is made
-- from it, here as in replay_request.
-- in: as render_context; model: named in the body, but for gemini, whose address names
--     it; parameters: a JSON object whose members join the body, tools among them, which
--     count in the budget
-- out: the request; body is what you send, as text
-- errors: PC001, PC012, PC020, PC030, 22023, 23514 too long
-- since: 0.1.0
create or replace function convo.prepare_request(
    conversation_id uuid,
    format text,
    model text default null,
    policy text default null,
    token_budget integer default null,
    parameters json default null
) returns convo.request_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    others constant text[] := convo._split_parameters(prepare_request.parameters);
    tool_tokens constant integer := coalesce(convo.estimate_tokens(others[2]), 0);
    context record;
    rules convo.policy_record;
    frame convo.request_frame;
    request convo.request;
    body text;
begin
    perform convo._require_format(prepare_request.format);
    -- one statement, so that policy, items and edits are of one moment
    select
        c.user_id,
        c.edit_count,
        convo._resolve_policy(
            c, prepare_request.policy, prepare_request.token_budget
        ) as rules,
        i.*
    into context
    from convo.conversation as c
    cross join lateral (
        select
            array[
                min(o.content) filter (where o.kind = 'system' and o.seq is null),
                min(o.content) filter (where o.kind = 'memory')
            ] as texts,
            range_agg(int4range(o.seq, o.seq, '[]')) filter (
                where o.kind in ('system', 'message') and o.seq is not null
            ) as messages,
            range_agg(int4range(o.seq, o.seq, '[]')) filter (
                where o.kind = 'recalled'
            ) as recalled,
            max(o.seq) filter (where o.kind = 'summary') as summary_seq,
            count(*) as items,
            sum(o.tokens) as tokens
        from convo._considered_items(
            c.conversation_id, prepare_request.policy, prepare_request.token_budget,
            tool_tokens, false
        ) as o
        where o.reason is null
    ) as i
    where c.tenant_id = tenant
        and c.conversation_id = prepare_request.conversation_id;
    if not found then
        perform convo._fail_not_found(prepare_request.conversation_id);
    end if;

    rules := context.rules;
    frame.tenant_id := tenant;
    frame.conversation_id := prepare_request.conversation_id;
    frame.user_id := context.user_id;
    frame.format := prepare_request.format;
    frame.model := nullif(prepare_request.model, '');
    frame.policy := rules.name;
    frame.rules := to_jsonb(rules) - 'name';
    frame.renderer := convo._renderer();
    frame := convo._store_frame(frame, context.texts || others);

    request.tenant_id := tenant;
    request.request_id := convo._uuid_v7();
    request.conversation_id := frame.conversation_id;
    request.user_id := frame.user_id;
    request.frame_id := frame.frame_id;
    request.messages := context.messages;
    request.recalled := context.recalled;
    request.edit_count := context.edit_count;
    request.summary_seq := context.summary_seq;
    request.token_count :=
        context.tokens + context.items * rules.message_overhead + tool_tokens;
    body := convo._request_body(request);
    request.body_sha256 := sha256(convert_to(body, 'UTF8'));
    request.created_at := clock_timestamp();
    insert into convo.request (
        tenant_id, request_id, conversation_id, frame_id, created_at, token_count,
        summary_seq, edit_count, user_id, body_sha256, messages, recalled
    )
    values (
        tenant, request.request_id, request.conversation_id, request.frame_id,
        request.created_at, request.token_count, request.summary_seq, request.edit_count,
        request.user_id, request.body_sha256, request.messages, request.recalled
    );
    return convo._request_record(request, frame, body);
end
$$;

comment on function convo.prepare_request(uuid, text, text, text, integer, json) is
'What is to be sent to a model: the rendered context with model and parameters, as '
'text in body. replay_request gives the same bytes again at any time.';
revoke execute on function convo.prepare_request(
    uuid, text, text, text, integer, json
) from public;
grant execute on function convo.prepare_request(uuid, text, text, text, integer, json)
to convo_app, convo_service;
-- <<< sql/functions/request/prepare_request.sql

-- >>> sql/functions/request/replay_request.sql
-- replay_request: the exact bytes of a request, also after edits, soft deletions, new
-- summaries, changed memories and upgrades.
-- errors: PC003, PC030, PC060 something was erased since: DETAIL names it
-- since: 0.1.0
create or replace function convo.replay_request(request_id uuid) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request constant convo.request := convo._require_request(
        replay_request.request_id
    );
    body constant text := convo._request_body(request);
begin
    if sha256(convert_to(body, 'UTF8')) <> request.body_sha256 then
        perform convo._fail('PC060', jsonb_build_object(
            'request_id', request.request_id, 'reason', 'the bytes differ'
        ));
    end if;
    return body;
end
$$;

comment on function convo.replay_request(uuid) is
'The exact bytes of a request that was prepared. PC060, and nothing else, if something '
'in it was erased since.';
revoke execute on function convo.replay_request(uuid) from public;
grant execute on function convo.replay_request(uuid)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/request/replay_request.sql

-- >>> sql/functions/request/list_requests.sql
-- list_requests: the requests of a conversation, newest first.
-- in: at: only what was prepared at or before that time (null: all)
-- out: without their bodies; none when the conversation isn't there or isn't the caller's
-- errors: PC030, 22023
-- since: 0.1.0
create or replace function convo.list_requests(
    conversation_id uuid,
    at timestamptz default null,
    page_size integer default 30
) returns setof convo.request_record
language sql stable rows 30
begin atomic
    select (convo._request_record(r, f, null)).*
    from convo.request as r
    inner join convo.request_frame as f
        on f.tenant_id = r.tenant_id
            and f.conversation_id = r.conversation_id
            and f.frame_id = r.frame_id
    where r.tenant_id = (select convo._require_tenant())
        and r.conversation_id = list_requests.conversation_id
        and r.created_at <= coalesce(list_requests.at, 'infinity')
    order by r.created_at desc, r.request_id desc
    limit (select convo._size('page_size', list_requests.page_size, 1000));
end;

comment on function convo.list_requests(uuid, timestamptz, integer) is
'The requests of a conversation, newest first, without their bodies; at: what was '
'prepared at or before that time.';
revoke execute on function convo.list_requests(uuid, timestamptz, integer) from public;
grant execute on function convo.list_requests(uuid, timestamptz, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/request/list_requests.sql

-- >>> sql/functions/request/_answer_format.sql
-- _answer_format: which format a provider's response is of, as far as it can be told.
-- in: a response or its message, cleaned by _readable
-- out: null where it may be of several
create or replace function convo._answer_format(response jsonb) returns text
language sql immutable parallel safe
begin atomic
    select case
        when jsonb_typeof(_answer_format.response) = 'array'
            or _answer_format.response ? 'output'
            then 'openai_responses'
        when _answer_format.response ?| array['choices', 'tool_calls', 'refusal']
            then 'openai'
        when _answer_format.response
            ?| array['candidates', 'promptFeedback', 'prompt_feedback', 'parts']
            then 'gemini'
        when _answer_format.response ? 'stop_reason'
            or jsonb_path_exists(
                _answer_format.response,
                '$.content[*].type
                    ? (@ == "tool_use" || @ == "thinking" || @ == "redacted_thinking")'
            )
            then 'anthropic'
        when _answer_format.response ? 'status'
            or _answer_format.response ->> 'type' <> 'message'
            then 'openai_responses'
    end;
end;

comment on function convo._answer_format(jsonb) is
'Which format a provider''s response is of, as far as it can be told.';
revoke execute on function convo._answer_format(jsonb) from public;
grant execute on function convo._answer_format(jsonb) to convo_app, convo_service;
-- <<< sql/functions/request/_answer_format.sql

-- >>> sql/functions/request/_is_json.sql
-- _is_json: whether a text is JSON; null is not.
create or replace function convo._is_json(candidate text) returns boolean
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return _is_json.candidate::json is not null;
exception when invalid_text_representation or statement_too_complex then
    return false;
end
$$;

comment on function convo._is_json(text) is 'Whether a text is JSON; null is not.';
revoke execute on function convo._is_json(text) from public;
grant execute on function convo._is_json(text) to convo_app, convo_service;
-- <<< sql/functions/request/_is_json.sql

-- >>> sql/functions/request/_without_last.sql
-- _without_last: a JSON array without its last element, the others byte for byte.
create or replace function convo._without_last(elements json) returns text
language sql immutable parallel safe
return (
    select '[' || coalesce(string_agg(e.element::text, ',' order by e.n), '') || ']'
    from json_array_elements(_without_last.elements) with ordinality as e (element, n)
    where e.n < json_array_length(_without_last.elements)
);

comment on function convo._without_last(json) is
'A JSON array without its last element, the others byte for byte.';
revoke execute on function convo._without_last(json) from public;
grant execute on function convo._without_last(json) to convo_app, convo_service;
-- <<< sql/functions/request/_without_last.sql

-- >>> sql/functions/request/_openai_answer.sql
-- _openai_answer: what a response of the OpenAI chat completions format says.
-- A call that was cut off, so that its arguments aren't JSON, is left out.
-- in: the response or its message, with escapes hidden and readable
create or replace function convo._openai_answer(hidden json, readable jsonb)
returns convo._answer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    choice constant jsonb := _openai_answer.readable #> '{choices,0}';
    last_call constant jsonb := choice #> '{message,tool_calls,-1}';
    message json := coalesce(
        _openai_answer.hidden #> '{choices,0,message}', _openai_answer.hidden
    );
    calls text;
    answer convo._answer;
begin
    answer.finish_reason := choice ->> 'finish_reason';
    answer.is_truncated := choice is not null and coalesce(
        answer.finish_reason in ('length', 'content_filter'), true
    );
    if answer.is_truncated
        and last_call is not null
        and not convo._is_json(last_call #>> '{function,arguments}')
    then
        calls := convo._without_last(message -> 'tool_calls');
        message := case
            when calls = '[]' then convo._json_without(message, array['tool_calls'])
            else convo._json_set(message, 'tool_calls', calls)
        end;
    end if;
    answer.messages := json_build_array(message);
    answer.model := _openai_answer.readable ->> 'model';
    answer.usage := _openai_answer.hidden -> 'usage';
    return answer;
end
$$;

comment on function convo._openai_answer(json, jsonb) is
'What a response of the OpenAI chat completions format says.';
revoke execute on function convo._openai_answer(json, jsonb) from public;
grant execute on function convo._openai_answer(json, jsonb) to convo_app, convo_service;
-- <<< sql/functions/request/_openai_answer.sql

-- >>> sql/functions/request/_openai_responses_answer.sql
-- _openai_responses_answer: what a response of the OpenAI responses format says.
-- Items that were cut off are left out, but for messages, whose text counts as far as it
-- goes; and so is reasoning at the end that lost what it led to.
-- in: the response or its output, with escapes hidden and readable
create or replace function convo._openai_responses_answer(hidden json, readable jsonb)
returns convo._answer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    status constant text := case
        when _openai_responses_answer.readable ? 'output'
            then coalesce(_openai_responses_answer.readable ->> 'status', 'incomplete')
    end;
    output constant json := case
        when status is not null then _openai_responses_answer.hidden -> 'output'
        when json_typeof(_openai_responses_answer.hidden) = 'array'
            then _openai_responses_answer.hidden
        else json_build_array(_openai_responses_answer.hidden)
    end;
    answer convo._answer;
begin
    answer.finish_reason := coalesce(
        _openai_responses_answer.readable #>> '{incomplete_details,reason}', status
    );
    answer.is_truncated := coalesce(status <> 'completed', false);
    answer.messages := output;
    if answer.is_truncated then
        select coalesce(json_agg(i.item order by i.n), '[]') into answer.messages
        from (
            select
                o.item,
                o.n,
                max(o.n) filter (where o.item ->> 'type' <> 'reasoning') over ()
                as last_n
            from json_array_elements(output) with ordinality as o (item, n)
            where o.item ->> 'type' = 'message'
                or coalesce(o.item ->> 'status', 'completed') = 'completed'
        ) as i
        where i.n <= i.last_n;
    end if;
    answer.model := case
        when status is not null then _openai_responses_answer.readable ->> 'model'
    end;
    answer.usage := case
        when status is not null then _openai_responses_answer.hidden -> 'usage'
    end;
    return answer;
end
$$;

comment on function convo._openai_responses_answer(json, jsonb) is
'What a response of the OpenAI responses format says.';
revoke execute on function convo._openai_responses_answer(json, jsonb) from public;
grant execute on function convo._openai_responses_answer(json, jsonb)
to convo_app, convo_service;
-- <<< sql/functions/request/_openai_responses_answer.sql

-- >>> sql/functions/request/_anthropic_answer.sql
-- _anthropic_answer: what a response of the Anthropic format says.
-- Of a response only role and content may go back to the provider. A block at the end
-- that was cut off is left out: a call, or thinking without its signature.
-- in: the response or its message, with escapes hidden and readable
create or replace function convo._anthropic_answer(hidden json, readable jsonb)
returns convo._answer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    last_block constant jsonb := _anthropic_answer.readable #> '{content,-1}';
    content text := coalesce((_anthropic_answer.hidden -> 'content')::text, 'null');
    answer convo._answer;
begin
    answer.messages := json_build_array(_anthropic_answer.hidden);
    if not _anthropic_answer.readable ? 'stop_reason' then
        return answer;
    end if;
    answer.finish_reason := _anthropic_answer.readable ->> 'stop_reason';
    answer.is_truncated := coalesce(answer.finish_reason in (
        'max_tokens', 'model_context_window_exceeded', 'refusal'
    ), true);
    if answer.is_truncated and (
        last_block ->> 'type' like '%tool_use'
        or last_block ->> 'type' = 'thinking'
        and coalesce(last_block ->> 'signature', '') = ''
    ) then
        content := convo._without_last(content::json);
    end if;
    answer.messages := json_build_array(
        ('{"role":"assistant","content":' || content || '}')::json
    );
    answer.model := _anthropic_answer.readable ->> 'model';
    answer.usage := _anthropic_answer.hidden -> 'usage';
    return answer;
end
$$;

comment on function convo._anthropic_answer(json, jsonb) is
'What a response of the Anthropic format says.';
revoke execute on function convo._anthropic_answer(json, jsonb) from public;
grant execute on function convo._anthropic_answer(json, jsonb)
to convo_app, convo_service;
-- <<< sql/functions/request/_anthropic_answer.sql

-- >>> sql/functions/request/_gemini_answer.sql
-- _gemini_answer: what a response of the Gemini format says, in camel or snake case.
-- Calls come whole in this format. An answer without content has no parts.
-- in: the response or its content, with escapes hidden and readable
create or replace function convo._gemini_answer(hidden json, readable jsonb)
returns convo._answer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    candidate constant jsonb := _gemini_answer.readable #> '{candidates,0}';
    content json := _gemini_answer.hidden;
    answer convo._answer;
begin
    if candidate is not null then
        content := case jsonb_typeof(candidate -> 'content')
            when 'object' then _gemini_answer.hidden #> '{candidates,0,content}'
            else '{"parts":[]}'
        end;
        if content ->> 'role' is null then
            content := convo._json_set(content, 'role', '"model"');
        end if;
    end if;
    answer.finish_reason := coalesce(
        candidate ->> 'finishReason', candidate ->> 'finish_reason'
    );
    answer.is_truncated := candidate is not null
        and answer.finish_reason is distinct from 'STOP';
    answer.messages := json_build_array(content);
    answer.model := coalesce(
        _gemini_answer.readable ->> 'modelVersion',
        _gemini_answer.readable ->> 'model_version'
    );
    answer.usage := coalesce(
        _gemini_answer.hidden -> 'usageMetadata',
        _gemini_answer.hidden -> 'usage_metadata'
    );
    return answer;
end
$$;

comment on function convo._gemini_answer(json, jsonb) is
'What a response of the Gemini format says.';
revoke execute on function convo._gemini_answer(json, jsonb) from public;
grant execute on function convo._gemini_answer(json, jsonb) to convo_app, convo_service;
-- <<< sql/functions/request/_gemini_answer.sql

-- >>> sql/functions/request/_read_answer.sql
-- _read_answer: what a provider's response says, in its own format.
-- in: the whole response, or the message in it
-- errors: PC050
create or replace function convo._read_answer(format text, response json) returns convo._answer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    readable jsonb;
    source text;
    answers jsonb;
    hidden text[];
    reason text;
    answer convo._answer;
begin
    begin
        readable := convo._readable(_read_answer.response);
    exception when numeric_value_out_of_range then
        perform convo._fail('PC050', '{"reason": "a number out of range"}');
    end;
    source := convo._answer_format(readable);
    answers := coalesce(readable -> 'choices', readable -> 'candidates');
    reason := case
        when readable is null then 'missing'
        when jsonb_typeof(readable) not in ('object', 'array') then 'not an object'
        when readable ->> 'type' = 'error'
            or jsonb_typeof(readable -> 'error') = 'object'
            or readable ->> 'status' in ('failed', 'cancelled')
            then 'an error, not an answer: see fail_request'
        when source <> _read_answer.format then 'a response of another format'
        when jsonb_typeof(readable -> 'output') <> 'array'
            or jsonb_typeof(answers) <> 'array'
            or answers = '[]'
            or _read_answer.format = 'openai'
            and jsonb_typeof(answers #> '{0,message}') is distinct from 'object'
            and answers is not null
            or source = 'gemini' and answers is null and not readable ? 'parts'
            then 'there is no answer in it'
        when jsonb_array_length(answers) > 1
            then 'it has several answers: give the message to keep'
    end;
    if reason is not null then
        perform convo._fail('PC050', jsonb_strip_nulls(jsonb_build_object(
            'reason', reason, 'expected', _read_answer.format,
            'format', case when source <> _read_answer.format then source end
        )));
    end if;

    hidden := convo._hide_escapes(_read_answer.response::text);
    answer := case _read_answer.format
        when 'openai' then convo._openai_answer(hidden[1]::json, readable)
        when 'openai_responses'
            then convo._openai_responses_answer(hidden[1]::json, readable)
        when 'anthropic' then convo._anthropic_answer(hidden[1]::json, readable)
        else convo._gemini_answer(hidden[1]::json, readable)
    end;
    answer.messages := convo._show_escapes(answer.messages::text, hidden[2:]);
    answer.model := nullif(left(answer.model, 255), '');
    answer.usage := convo._show_escapes(answer.usage::text, hidden[2:]);
    return answer;
end
$$;

comment on function convo._read_answer(text, json) is
'What a provider''s response says, in its own format.';
revoke execute on function convo._read_answer(text, json) from public;
grant execute on function convo._read_answer(text, json) to convo_app, convo_service;
-- <<< sql/functions/request/_read_answer.sql

-- >>> sql/functions/request/complete_request.sql
-- complete_request: stores the answer to a request, and what it cost.
-- The same response again stores nothing: it gives the messages stored before, as they
-- are now. An answer that was cut off keeps what is whole.
-- in: response: the provider's response in the request's format, whole or the message in
--     it (then nothing is known of usage and model); expected_seq: as append_messages
-- out: the messages of the answer; their metadata has finish_reason, and is_truncated
--      where the answer was cut off
-- errors: PC003, PC050 (not a response of that format; DETAIL has the reason),
--         PC011 another response came before, PC010, PC001, PC012
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create or replace function convo.complete_request(
    request_id uuid,
    response json,
    expected_seq integer default null
) returns setof convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request constant convo.request := convo._lock_request(complete_request.request_id);
    hash constant bytea := sha256(convert_to(complete_request.response::text, 'UTF8'));
    frame convo.request_frame;
    answer convo._answer;
    parsed convo._parsed_message[];
    conversation convo.conversation;
    first_seq integer := request.first_answer_seq;
    last_seq integer := request.last_answer_seq;
begin
    if request.response_sha256 is null then
        select f.* into frame
        from convo.request_frame as f
        where f.tenant_id = request.tenant_id
            and f.conversation_id = request.conversation_id
            and f.frame_id = request.frame_id;
        answer := convo._read_answer(frame.format, complete_request.response);
        answer.model := coalesce(answer.model, frame.model);
        parsed := convo._read_messages(frame.format, answer.messages, null);
        if exists (select from unnest(parsed) as p where p.role <> 'assistant') then
            perform convo._fail('PC050', jsonb_build_object(
                'reason', 'not a message of the assistant', 'expected', frame.format
            ));
        end if;
        conversation := convo._store_messages(
            request.conversation_id, frame.format, parsed, null, answer.model,
            complete_request.expected_seq, jsonb_strip_nulls(jsonb_build_object(
                'finish_reason', answer.finish_reason,
                'is_truncated', nullif(answer.is_truncated, false)
            ))
        );
        if cardinality(parsed) > 0 then
            last_seq := conversation.last_seq;
            first_seq := last_seq - cardinality(parsed) + 1;
        end if;
        perform convo._record_usage(
            request.tenant_id, request.request_id, request.conversation_id,
            request.user_id, frame.format, answer.model, answer.usage, false
        );
        update convo.request as r
        set finished_at = conversation.updated_at,
            first_answer_seq = first_seq,
            last_answer_seq = last_seq,
            response_sha256 = hash
        where r.tenant_id = request.tenant_id and r.request_id = request.request_id;
    elsif request.response_sha256 <> hash then
        perform convo._fail('PC011', jsonb_build_object(
            'request_id', request.request_id,
            'first_seq', first_seq, 'last_seq', last_seq
        ));
    end if;
    return query
    select (convo._message_record(m)).*
    from convo.message as m
    where m.tenant_id = request.tenant_id
        and m.conversation_id = request.conversation_id
        and m.seq between first_seq and last_seq
    order by m.seq;
end
$$;

comment on function convo.complete_request(uuid, json, integer) is
'Stores the answer to a request, from the provider''s own response, and its usage, all '
'or nothing. The same response again stores nothing twice; another one is PC011.';
revoke execute on function convo.complete_request(uuid, json, integer) from public;
grant execute on function convo.complete_request(uuid, json, integer)
to convo_app, convo_service;
-- <<< sql/functions/request/complete_request.sql

-- >>> sql/functions/request/fail_request.sql
-- fail_request: records a try that gave no answer; what it cost counts.
-- The request stays open: it may be tried again, fail again, or be completed.
-- in: error: what happened, cut to 2,000 characters; usage: the provider's, if it gave it
-- errors: PC003, PC011 it was completed, 22023
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create or replace function convo.fail_request(
    request_id uuid,
    error text,
    usage json default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request constant convo.request := convo._lock_request(fail_request.request_id);
    frame convo.request_frame;
begin
    if fail_request.error is null then
        perform convo._fail('22023', '{"argument": "error", "reason": "missing"}');
    elsif request.response_sha256 is not null then
        perform convo._fail('PC011', jsonb_build_object(
            'request_id', request.request_id,
            'first_seq', request.first_answer_seq, 'last_seq', request.last_answer_seq
        ));
    end if;
    select f.* into frame
    from convo.request_frame as f
    where f.tenant_id = request.tenant_id
        and f.conversation_id = request.conversation_id
        and f.frame_id = request.frame_id;
    perform convo._record_usage(
        request.tenant_id, request.request_id, request.conversation_id,
        request.user_id, frame.format, frame.model, fail_request.usage, true
    );
    update convo.request as r
    set finished_at = clock_timestamp(),
        error = left(fail_request.error, 2000)
    where r.tenant_id = request.tenant_id and r.request_id = request.request_id;
end
$$;

comment on function convo.fail_request(uuid, text, json) is
'Records a try that gave no answer, and what it cost. The request may be tried again.';
revoke execute on function convo.fail_request(uuid, text, json) from public;
grant execute on function convo.fail_request(uuid, text, json)
to convo_app, convo_service;
-- <<< sql/functions/request/fail_request.sql

-- >>> sql/functions/retention/purge.sql
-- purge: one batch of what is due by the retention rules of all tenants.
-- Works under row security: its role sees what is due, and can delete what is due and
-- not held. Rows that are locked are left for the next run, so two purges at once share
-- the work; a purge that is killed leaves whole conversations, never parts.
-- in: is_dry_run: only count what this call would remove; page_size: most conversations
-- out: what went, and how many are due but stay because they are held
-- errors: 22023; over 1,000 is 1,000
-- locks: the rows it deletes
-- since: 0.1.0
create or replace function convo.purge(
    is_dry_run boolean default false,
    page_size integer default 500
) returns convo.purge_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    batch_size constant integer := convo._size('page_size', purge.page_size, 1000);
    run_id constant uuid := convo._uuid_v7();
    prompts convo.prompt[];
    result convo.purge_record;
begin
    result.started_at := clock_timestamp();
    result.is_dry_run := purge.is_dry_run;
    if result.is_dry_run is null then
        perform convo._fail('22023', '{"argument": "is_dry_run", "reason": "missing"}');
    end if;
    select count(*) into result.held
    from convo._due_conversations(true, null);

    if result.is_dry_run then
        select count(*), coalesce(sum(d.last_seq), 0)
        into result.conversations, result.messages
        from (
            select a.last_seq
            from convo._due_conversations(false, batch_size) as a
            limit batch_size
        ) as d;
        result.finished_at := clock_timestamp();
        return result;
    end if;

    -- _due_conversations once more, with the rows locked: a rule or an activity that
    -- has just changed is seen on the locked row.
    with due as materialized (
        select c.tenant_id, c.conversation_id
        from convo.retention_policy as r
        cross join lateral (
            select s.tenant_id, s.conversation_id
            from convo.conversation as s
            where s.tenant_id = r.tenant_id
                and s.retention_class = r.retention_class
                and s.created_at < statement_timestamp() - r.max_age
                and (
                    r.basis = 'creation'
                    or s.updated_at < statement_timestamp() - r.max_age
                )
                and not s.is_on_hold
            order by s.created_at
            limit batch_size
            for update skip locked
        ) as c
        limit batch_size
    ),

    gone as (
        delete from convo.conversation as c
        using due as d
        where c.tenant_id = d.tenant_id and c.conversation_id = d.conversation_id
        returning
            c.tenant_id, c.conversation_id, c.user_id, c.last_seq,
            c.system_prompt_sha256
    ),

    texts as (
        select
            g.tenant_id,
            g.user_id,
            g.system_prompt_sha256 as sha256
        from gone as g
        union
        select
            r.tenant_id,
            r.user_id,
            r.sha256
        from convo.request_prompt as r
        inner join due as d
            on d.tenant_id = r.tenant_id and d.conversation_id = r.conversation_id
    ),

    tombstones as (
        insert into convo.tombstone (tenant_id, conversation_id, user_id)
        select g.tenant_id, g.conversation_id, g.user_id
        from gone as g
        on conflict do nothing -- by direct SQL, before its time
    ),

    runs as (
        insert into convo.purge_run (
            tenant_id, purge_run_id, conversations, messages, started_at, finished_at
        )
        select
            g.tenant_id, run_id, count(*), sum(g.last_seq), result.started_at,
            clock_timestamp()
        from gone as g
        group by g.tenant_id
    )

    select
        count(*),
        coalesce(sum(g.last_seq), 0),
        array(
            select row(t.tenant_id, t.user_id, t.sha256, null, null, null)::convo.prompt
            from texts as t
            where t.sha256 is not null
        )
    into result.conversations, result.messages, prompts
    from gone as g;

    perform convo._collect_prompt(p.tenant_id, p.user_id, p.sha256)
    from unnest(prompts) as p;
    result.finished_at := clock_timestamp();
    return result;
end
$$;

comment on function convo.purge(boolean, integer) is
'Removes one batch of what is due by the retention rules, across tenants. Held '
'conversations stay and are counted.';
revoke execute on function convo.purge(boolean, integer) from public;
grant execute on function convo.purge(boolean, integer) to convo_maintainer;
-- <<< sql/functions/retention/purge.sql

-- === sql/functions/context/_context_items.sql gone
-- private: nobody calls it but the functions above
-- squawk-ignore ban-drop-function
drop function convo._context_items(uuid, text, integer, boolean);
-- <<< sql/functions/context/_context_items.sql

reset role;

set local role convo_owner;
insert into convo.schema_migration (track, version, name)
values ('core', 2, '0002_turns');
reset role;

-- migrate:down
