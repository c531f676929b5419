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
