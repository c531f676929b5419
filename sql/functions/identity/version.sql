-- version: the version of the toolkit that is installed.
-- since: 0.1.0
create function convo.version() returns text
language sql immutable parallel safe
return '0.1.0';

comment on function convo.version() is 'The version of the toolkit that is installed.';
revoke execute on function convo.version() from public;
grant execute on function convo.version()
to convo_app, convo_service, convo_reader, convo_maintainer, convo_backup;
