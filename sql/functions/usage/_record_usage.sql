-- _record_usage: records what a call used, at the price of now.
-- in: the provider's usage; null: nothing is known of it, and nothing recorded. What
--     Anthropic lists beside its sums gets rows of its own.
create function convo._record_usage(
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
