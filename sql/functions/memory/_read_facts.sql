-- _read_facts: the facts that a caller wants remembered, one a key.
-- Of several with one key the last counts; ones without key or value are left out. A
-- number or a boolean counts as its text, and U+FFFD stands for what text can't hold.
-- errors: 22023 not an array of objects, key or value not a text, not a time (DETAIL:
--         index, reason)
create function convo._read_facts(facts json)
returns table (key text, value text, expires_at timestamptz(3))
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := convo._readable(_read_facts.facts);
    fact record;
    reason text;
begin
    if jsonb_typeof(source) is distinct from 'array' then
        perform convo._fail('22023', '{"argument": "facts", "reason": "not an array"}');
    end if;
    for fact in
        select f.item, f.n, row_number() over k = 1 as is_last
        from jsonb_array_elements(source) with ordinality as f (item, n)
        window k as (partition by f.item ->> 'key' order by f.n desc)
        order by f.n
    loop
        reason := case
            when jsonb_typeof(fact.item) <> 'object' then 'not an object'
            when jsonb_typeof(fact.item -> 'key') in ('object', 'array')
                then 'key is not a text'
            when jsonb_typeof(fact.item -> 'value') in ('object', 'array')
                then 'value is not a text'
            when jsonb_typeof(fact.item -> 'expires_at') not in ('string', 'null')
                then 'expires_at is not a time'
        end;
        begin
            expires_at := (fact.item ->> 'expires_at')::timestamptz;
            if expires_at not between '0001-01-02 UTC' and '9999-12-30 UTC' then
                reason := 'expires_at is not a time';
            end if;
        exception when data_exception then
            reason := 'expires_at is not a time';
        end;
        if reason is not null then
            perform convo._fail('22023', jsonb_build_object(
                'argument', 'facts', 'index', fact.n - 1, 'reason', reason
            ));
        end if;
        key := fact.item ->> 'key';
        value := fact.item ->> 'value';
        if fact.is_last and not convo._is_blank(key) and not convo._is_blank(value) then
            return next;
        end if;
    end loop;
end
$$;

comment on function convo._read_facts(json) is
'The facts that a caller wants remembered, one a key.';
revoke execute on function convo._read_facts(json) from public;
grant execute on function convo._read_facts(json) to convo_app, convo_service;
