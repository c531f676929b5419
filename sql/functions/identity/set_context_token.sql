-- set_context_token: says who is asking by a signed token, for this transaction only.
-- A login in mode token is known by nothing else; for others the token counts as if its
-- tenant and user had been set by set_context.
-- errors: PC031 bad, expired or forged
-- since: 0.1.0
create function convo.set_context_token(token text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    named constant text[] := convo_private._verified_context(set_context_token.token);
begin
    if named[1] is null then
        perform convo._fail('PC031', '{"reason": "no tenant"}');
    end if;
    perform
        convo.set_context(named[1], named[2]),
        set_config('convo.token', set_context_token.token, true);
end
$$;

comment on function convo.set_context_token(text) is
'Says who is asking by a signed token, for this transaction only. PC031 if it is bad, '
'expired or forged.';
revoke execute on function convo.set_context_token(text) from public;
grant execute on function convo.set_context_token(text)
to convo_app, convo_service, convo_reader;
