-- schema_migration: the owner writes it, the groups may read it.
alter table convo.schema_migration enable row level security;
alter table convo.schema_migration force row level security;

create policy schema_migration_owner on convo.schema_migration
for all to convo_owner using (true) with check (true);
comment on policy schema_migration_owner on convo.schema_migration is
'Migrations run as the owner.';

create policy schema_migration_group on convo.schema_migration
for select to convo_app, convo_service, convo_reader, convo_maintainer, convo_backup
using (true);
comment on policy schema_migration_group on convo.schema_migration is
'Which version is installed is no secret.';

grant select on convo.schema_migration
to convo_app, convo_service, convo_reader, convo_maintainer, convo_backup;
