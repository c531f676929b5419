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
