-- schema_migration: the ledger of applied migrations, one row each.
create table convo.schema_migration (
    track text not null,
    version integer not null,
    name text not null,
    applied_at timestamptz(3) not null default clock_timestamp(),
    applied_by text not null default session_user,
    constraint schema_migration_pkey primary key (track, version),
    constraint schema_migration_track_check check (length(track) between 1 and 30),
    constraint schema_migration_version_check check (version > 0),
    constraint schema_migration_name_check check (length(name) between 1 and 200),
    constraint schema_migration_applied_by_check check (length(applied_by) <= 63)
);

comment on table convo.schema_migration is
'The migrations applied to this database, in order, by track.';
comment on column convo.schema_migration.track is
'core, or an optional track that needs an extension.';
comment on column convo.schema_migration.version is
'The number that the file name begins with.';
comment on column convo.schema_migration.name is
'The file name without its ending.';
comment on column convo.schema_migration.applied_at is
'When it was applied.';
comment on column convo.schema_migration.applied_by is
'The login that applied it.';
