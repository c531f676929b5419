-- roles: the group roles that own, use and maintain the store.
-- They are NOLOGIN and members of nothing; logins are made members of them.
-- Roles belong to the cluster, so one that exists already (another database of the
-- same server uses this toolkit) is taken as it is.
do $roles$
declare
    role_name text;
begin
    foreach role_name in array array[
        'convo_owner', 'convo_app', 'convo_service', 'convo_reader',
        'convo_maintainer', 'convo_search', 'convo_backup'
    ] loop
        begin
            if not exists (
                select from pg_catalog.pg_roles as r where r.rolname = role_name
            ) then
                execute pg_catalog.format('create role %I nologin', role_name);
            end if;
        exception when duplicate_object or unique_violation then
            null; -- made in this moment by an installation in another database
        end;
    end loop;
end
$roles$;

-- Who installs must be able to act as the owner and as the definer. A superuser is;
-- a CREATEROLE user grants itself the right to SET ROLE, without inheriting.
do $membership$
declare
    role_name text;
    right_needed text := 'member';
    set_option text := '';
begin
    if current_setting('server_version_num')::integer >= 160000 then
        right_needed := 'set';
        set_option := ' with set true, inherit false';
    end if;
    foreach role_name in array array['convo_owner', 'convo_search'] loop
        if not pg_catalog.pg_has_role(role_name, right_needed) then
            execute pg_catalog.format(
                'grant %I to %I%s', role_name, current_user, set_option
            );
        end if;
    end loop;
end
$membership$;

-- Comments on roles need the right to change them, which the installer of a second
-- database may not have: then the first one's stand.
do $comments$
begin
    comment on role convo_owner is
        'Owns every object of the conversation store. Nobody logs in as it.';
    comment on role convo_app is
        'For applications: one user''s own conversations in one tenant.';
    comment on role convo_service is
        'For workers and support: all users of one tenant.';
    comment on role convo_reader is
        'Reads everything in one tenant, changes nothing.';
    comment on role convo_maintainer is
        'Purges what is due in all tenants; sees keys and times, never content.';
    comment on role convo_search is
        'Owns the few SECURITY DEFINER functions. Nobody logs in as it.';
    comment on role convo_backup is
        'Reads every row, for logical dumps.';
exception when insufficient_privilege then
    null;
end
$comments$;
