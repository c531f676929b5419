-- usage_by_day: what a day used and cost.
create view convo.usage_by_day
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
