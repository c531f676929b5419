-- _token_count: a number of tokens out of a provider's usage.
-- in: JSON of any kind, and the names that lead to it, of which any may be missing
-- out: what isn't a number of tokens counts as 0
create function convo._token_count(usage jsonb, variadic path text[]) returns bigint
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
