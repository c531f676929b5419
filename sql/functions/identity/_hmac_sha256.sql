-- _hmac_sha256: HMAC with SHA-256 (RFC 2104), of core functions only.
-- in: a key of at most 64 bytes
create function convo._hmac_sha256(key bytea, message bytea) returns bytea
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    inner_pad bytea := decode(repeat('36', 64), 'hex');
    outer_pad bytea := decode(repeat('5c', 64), 'hex');
begin
    for n in 0 .. length(_hmac_sha256.key) - 1 loop
        inner_pad := set_byte(inner_pad, n, get_byte(_hmac_sha256.key, n) # 54);
        outer_pad := set_byte(outer_pad, n, get_byte(_hmac_sha256.key, n) # 92);
    end loop;
    return sha256(outer_pad || sha256(inner_pad || _hmac_sha256.message));
end
$$;

comment on function convo._hmac_sha256(bytea, bytea) is
'HMAC with SHA-256, of core functions only.';
revoke execute on function convo._hmac_sha256(bytea, bytea) from public;
grant execute on function convo._hmac_sha256(bytea, bytea) to convo_search;
