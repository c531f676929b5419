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
