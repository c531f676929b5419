-- extension: pgvector, and where its type is found by the statements that follow.
-- Made by whoever installs, not by the owner: it may need a superuser, and then somebody
-- makes it beforehand.
do $extension$
declare
    home name;
begin
    if not exists (
        select from pg_catalog.pg_extension as e where e.extname = 'vector'
    ) then
        begin
            create extension vector;
        exception when insufficient_privilege then
            raise insufficient_privilege using
                message = 'the extension vector can not be created',
                hint = 'As superuser: create extension vector';
        when undefined_file or feature_not_supported then
            raise feature_not_supported using
                message = 'this server has no extension vector',
                hint = 'Install pgvector, or leave the vector track out.';
        end;
    end if;
    select n.nspname into home
    from pg_catalog.pg_extension as e
    inner join pg_catalog.pg_namespace as n on e.extnamespace = n.oid
    where e.extname = 'vector';
    -- added at the end: what runs this file may look for tables of its own after it
    perform set_config('search_path', concat_ws(
        ', ', nullif(current_setting('search_path'), ''), quote_ident(home)
    ), true);
end
$extension$;
