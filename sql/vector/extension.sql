-- extension: pgvector, and where its type is found by the statements that follow.
-- Made by whoever installs, not by the owner: it is a trusted extension, which needs
-- CREATE on the database.
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
                hint = 'Ask the database''s owner: create extension vector';
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
    perform set_config('search_path', format('pg_catalog, %I, pg_temp', home), true);
end
$extension$;
