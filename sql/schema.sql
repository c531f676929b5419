-- schema: the two schemas, and the rule that nothing is for PUBLIC.
do $encoding$
begin
    if current_setting('server_encoding') <> 'UTF8' then
        raise feature_not_supported using
            message = 'the database is not in UTF8',
            detail = json_build_object(
                'encoding', current_setting('server_encoding')
            )::text,
            hint = 'Create a database with encoding UTF8 for it.';
    end if;
end
$encoding$;

create schema convo authorization convo_owner;
create schema convo_private authorization convo_owner;

set local role convo_owner;

comment on schema convo is
'Conversation history for LLM applications: call its functions.';
comment on schema convo_private is
'What the functions in schema convo use: login rules and definer helpers.';

grant usage on schema convo to
convo_app, convo_service, convo_reader, convo_maintainer, convo_search, convo_backup;
grant usage on schema convo_private to
convo_app, convo_service, convo_reader, convo_maintainer, convo_search, convo_backup;

-- A per-schema default can't take away what PUBLIC has by the global one.
alter default privileges for role convo_owner revoke execute on functions from public;
alter default privileges for role convo_owner revoke usage on types from public;
