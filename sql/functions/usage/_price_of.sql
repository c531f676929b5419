-- _price_of: the price of a model at a time.
-- A name with a date at its end, as providers answer with, has the price of the name
-- without it, unless it has one of its own.
-- out: null where it has none
create function convo._price_of(model text, at timestamptz) returns convo.model_price
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
