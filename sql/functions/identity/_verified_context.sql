-- _verified_context: the tenant and the user that a signed token names.
-- A token is v1.<key id>.<tenant>.<user>.<expiry>.<signature>: tenant and user in UTF-8
-- and base64url without padding (no user: empty), the expiry in seconds since 1970, the
-- signature the HMAC-SHA256 of all before its dot, in hex. SECURITY DEFINER, since
-- nobody who sends SQL may read a key.
-- in: the token; null or empty: there is none
-- out: null without a token
-- errors: PC031; no exception block catches 22021, which a signer gets who signs what
--     isn't UTF-8: on PostgreSQL 15 such a block can't run in a parallel plan
create function convo_private._verified_context(token text) returns text[]
language plpgsql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    parts constant text[] := string_to_array(_verified_context.token, '.');
    signed constant text := left(
        _verified_context.token, -length(parts[6]) - 1
    );
    secret bytea;
    reason text;
begin
    if coalesce(_verified_context.token, '') = '' then
        return null;
    elsif cardinality(parts) <> 6
        or parts[1] <> 'v1'
        or parts[5] !~ '^[0-9]{1,12}$'
        -- base64url, no length of which leaves one character over
        or concat(parts[3], parts[4]) !~ '^[A-Za-z0-9_-]*$'
        or 1 in (length(parts[3]) % 4, length(parts[4]) % 4)
        or length(_verified_context.token) > 4096
    then
        perform convo._fail('PC031', '{"reason": "malformed"}');
    end if;
    select k.secret into secret
    from convo_private.context_key as k
    where k.key_id = parts[2]
        and coalesce(k.expires_at > statement_timestamp(), true);
    -- hashed, so that the time it takes tells nothing about the right signature
    if secret is null
        or sha256(convert_to(parts[6], 'UTF8')) <> sha256(convert_to(
            encode(
                convo._hmac_sha256(secret, convert_to(signed, 'UTF8')), 'hex'
            ),
            'UTF8'
        ))
    then
        reason := 'not signed with a key that is valid now';
    elsif to_timestamp(parts[5]::bigint) <= statement_timestamp() then
        reason := 'expired';
    end if;
    if reason is not null then
        perform convo._fail('PC031', jsonb_build_object('reason', reason));
    end if;
    return array(
        select nullif(convert_from(
            decode(
                translate(p.part, '-_', '+/')
                    || repeat('=', (4 - length(p.part) % 4) % 4),
                'base64'
            ),
            'UTF8'
        ), '')
        from unnest(parts[3:4]) with ordinality as p (part, n)
        order by p.n
    );
end
$$;

comment on function convo_private._verified_context(text) is
'The tenant and the user that a signed token names, or null without a token.';
revoke execute on function convo_private._verified_context(text) from public;
grant execute on function convo_private._verified_context(text)
to convo_app, convo_service, convo_reader, convo_maintainer;
