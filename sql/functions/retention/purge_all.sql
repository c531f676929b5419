-- purge_all: purges until nothing is due, and commits after each batch.
-- Called in autocommit. A procedure that commits can't have a SET clause, so all it does
-- is call purge.
-- in: page_size: most conversations a batch; max_batches: stop after so many (null: never)
-- errors: 22023, 2D000 inside a transaction
-- since: 0.1.0
create procedure convo.purge_all(
    page_size integer default 500,
    max_batches integer default null
)
language plpgsql
as $$
#variable_conflict use_column
declare
    batches integer := 0;
begin
    if purge_all.max_batches operator(pg_catalog.<) 0 then
        perform convo._size('max_batches', purge_all.max_batches, 0);
    end if;
    while coalesce(batches operator(pg_catalog.<) purge_all.max_batches, true) loop
        exit when (convo.purge(false, purge_all.page_size)).conversations
            operator(pg_catalog.=) 0;
        commit;
        batches := batches operator(pg_catalog.+) 1;
    end loop;
end
$$;

comment on procedure convo.purge_all(integer, integer) is
'Purges until nothing is due, and commits after each batch. Call it in autocommit.';
revoke execute on procedure convo.purge_all(integer, integer) from public;
grant execute on procedure convo.purge_all(integer, integer) to convo_maintainer;
