-- _uuid_v7: a UUID of version 7 (RFC 9562): milliseconds first, then 74 random bits.
-- Made from a random one, so it is the same on every version of PostgreSQL.
create function convo._uuid_v7() returns uuid
language sql volatile parallel safe
return encode(
    set_bit(
        set_bit(
            overlay(
                uuid_send(gen_random_uuid()),
                substring(
                    int8send((extract(epoch from clock_timestamp()) * 1000)::bigint), 3
                ),
                1, 6
            ),
            52, 1
        ),
        53, 1
    ),
    'hex'
)::uuid;

comment on function convo._uuid_v7() is
'A new UUID of version 7: ordered by time, and not to be guessed.';
revoke execute on function convo._uuid_v7() from public;
grant execute on function convo._uuid_v7()
to convo_app, convo_service, convo_maintainer, convo_search;
