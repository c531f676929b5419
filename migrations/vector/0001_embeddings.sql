-- 0001_embeddings: embeddings of messages, and search by meaning.
-- phase: expand
-- locks: none that others wait for
-- migrate:up

set local lock_timeout = '5s';
set local convo.migration = '0001_embeddings';
set local standard_conforming_strings = on;

-- Outside a transaction the line above had no effect. Then the guard below fails, and
-- nothing after it may change anything, even where a client goes on after an error.
do $guard$
begin
    if current_setting('convo.migration', true) is distinct from '0001_embeddings' then
        set default_transaction_read_only = on;
    end if;
end
$guard$;

do $guard$
declare
    caller constant text := current_setting('role');
    ledger_owner name;
    newest integer := 0;
    is_applied boolean := false;
begin
    if current_setting('convo.migration', true) is distinct from '0001_embeddings' then
        raise exception using
            errcode = 'PC092',
            message = 'migration not in one transaction',
            detail = '{"version": 1}',
            hint = 'Connect again and run psql with -1, or use pgconvo migrate.';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('pgconvo migration', 0));

    -- Only its owner and the groups may read the ledger, so look as the owner.
    select pg_get_userbyid(c.relowner) into ledger_owner
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
    where n.nspname = 'convo' and c.relname = 'schema_migration';
    if ledger_owner is not null then
        if not pg_has_role(current_user, ledger_owner, 'member') then
            raise insufficient_privilege using
                message = 'only a member of the owner may migrate',
                detail = json_build_object('owner', ledger_owner)::text,
                hint = 'Connect as the role that installed the schema.';
        end if;
        perform set_config('role', ledger_owner, true);
        select
            coalesce(max(m.version), 0),
            coalesce(bool_or(m.version = 1), false)
        into newest, is_applied
        from convo.schema_migration as m
        where m.track = 'vector';
        perform set_config('role', caller, true);
    end if;

    if is_applied then
        raise exception using
            errcode = 'PC090',
            message = 'migration applied already',
            detail = json_build_object('version', 1, 'newest', newest)::text,
            hint = 'Leave this file out.';
    elsif newest <> 1 - 1 then
        raise exception using
            errcode = 'PC091',
            message = 'migration out of order',
            detail = json_build_object('version', 1, 'newest', newest)::text,
            hint = 'Apply the file that follows the newest one first.';
    end if;
end
$guard$;

do $core$
declare
    caller constant text := current_setting('role');
    newest integer := 0;
begin
    if exists (
        select
        from pg_catalog.pg_class as c
        inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
        where n.nspname = 'convo' and c.relname = 'schema_migration'
    ) then
        set local role convo_owner;
        select coalesce(max(m.version), 0) into newest
        from convo.schema_migration as m
        where m.track = 'core';
        perform set_config('role', caller, true);
    end if;
    if newest < 5 then
        raise exception using
            errcode = 'PC091',
            message = 'migration out of order',
            detail = json_build_object('core', newest, 'needed', 5)::text,
            hint = 'Apply the file that follows the newest one first.';
    end if;
end
$core$;

-- >>> sql/vector/extension.sql
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
-- <<< sql/vector/extension.sql

set local role convo_owner;

-- >>> sql/vector/tables/embedding_model.sql
-- embedding_model: the models whose embeddings a tenant has, and how long these are.
create table convo.embedding_model (
    tenant_id text collate "C" not null,
    model text collate "C" not null,
    dimension integer not null,
    constraint embedding_model_pkey primary key (tenant_id, model),
    constraint embedding_model_tenant_id_check check (
        length(tenant_id) between 1 and 255
    ),
    constraint embedding_model_model_check check (length(model) between 1 and 255),
    constraint embedding_model_dimension_check check (dimension between 1 and 16000)
);

comment on table convo.embedding_model is
'The models whose embeddings a tenant has. The first one stored says how long all are.';
comment on column convo.embedding_model.tenant_id is 'The tenant.';
comment on column convo.embedding_model.model is 'The name that callers give it.';
comment on column convo.embedding_model.dimension is 'The length of its embeddings.';
-- <<< sql/vector/tables/embedding_model.sql

-- >>> sql/vector/tables/embedding.sql
-- embedding: what a message means to a model, as a vector.
-- A row without one is a claim: a worker is about to store it. It belongs to a revision,
-- and is found only while the message still has that one.
create table convo.embedding (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    seq integer not null,
    model text collate "C" not null,
    user_id text collate "C" not null,
    revision integer not null,
    dimension integer,
    embedding vector,
    claimed_until timestamptz(3),
    constraint embedding_pkey primary key (tenant_id, conversation_id, seq, model),
    -- deferrable for transfer_conversation, which changes both sides
    constraint embedding_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint embedding_seq_check check (seq > 0),
    constraint embedding_model_check check (length(model) between 1 and 255),
    constraint embedding_revision_check check (revision > 0),
    constraint embedding_dimension_check check (
        (embedding is null) = (dimension is null)
        and (embedding is null) = (claimed_until is not null)
        and dimension = vector_dims(embedding)
    ),
    constraint embedding_embedding_check check (pg_column_size(embedding) <= 65536)
);

-- In the row as long as it fits a page: a search reads them all.
alter table convo.embedding alter column embedding set storage main;

-- An exact search reads one user's rows of one model, a service's the tenant's.
create index embedding_model_user_id_idx
on convo.embedding (tenant_id, model, user_id)
where embedding is not null;

comment on table convo.embedding is
'What messages mean to models, as vectors. Never found once the message has changed.';
comment on column convo.embedding.tenant_id is 'The tenant.';
comment on column convo.embedding.conversation_id is 'The conversation.';
comment on column convo.embedding.seq is 'The message.';
comment on column convo.embedding.model is 'The model that made it.';
comment on column convo.embedding.user_id is 'The owner of the conversation.';
comment on column convo.embedding.revision is 'The revision of the message it is of.';
comment on column convo.embedding.dimension is 'Its length.';
comment on column convo.embedding.embedding is 'The vector; null while claimed.';
comment on column convo.embedding.claimed_until is
'When the claim of a worker ends; null once it is stored.';
comment on index convo.embedding_model_user_id_idx is
'Embeddings of one model, by owner.';
-- <<< sql/vector/tables/embedding.sql

-- >>> sql/vector/tables/embedding_progress.sql
-- embedding_progress: which conversations have nothing left to embed.
-- Its row has the conversation's state when a claim found nothing missing: as long as it
-- is the same, no claim looks into the conversation again.
create table convo.embedding_progress (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    model text collate "C" not null,
    last_seq integer not null,
    updated_at timestamptz(3) not null,
    constraint embedding_progress_pkey primary key (tenant_id, conversation_id, model),
    constraint embedding_progress_conversation_fkey
    foreign key (tenant_id, conversation_id)
    references convo.conversation (tenant_id, conversation_id) on delete cascade,
    constraint embedding_progress_model_check check (length(model) between 1 and 255)
);

comment on table convo.embedding_progress is
'Which conversations have nothing left to embed, by model.';
comment on column convo.embedding_progress.tenant_id is 'The tenant.';
comment on column convo.embedding_progress.conversation_id is 'The conversation.';
comment on column convo.embedding_progress.model is 'The model.';
comment on column convo.embedding_progress.last_seq is
'The conversation''s last_seq when nothing was missing.';
comment on column convo.embedding_progress.updated_at is
'The conversation''s updated_at when nothing was missing.';
-- <<< sql/vector/tables/embedding_progress.sql

-- >>> sql/vector/policies/embedding_model.sql
-- embedding_model: every user of the tenant may know them.
alter table convo.embedding_model enable row level security;
alter table convo.embedding_model force row level security;

create policy embedding_model_tenant on convo.embedding_model
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy embedding_model_tenant on convo.embedding_model is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy embedding_model_app on convo.embedding_model
for select to convo_app
using (
    tenant_id = (select convo.current_tenant_id())
    and (select convo.current_user_id()) is not null
);
comment on policy embedding_model_app on convo.embedding_model is
'Applications read the models of the tenant that they act for a user of.';

create policy embedding_model_reader on convo.embedding_model
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy embedding_model_reader on convo.embedding_model is
'Reports read the tenant.';

create policy embedding_model_service on convo.embedding_model
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy embedding_model_service on convo.embedding_model is
'Workers retire the models of their tenant.';

create policy embedding_model_backup on convo.embedding_model
for select to convo_backup using (true);
comment on policy embedding_model_backup on convo.embedding_model is
'A dump has every row.';

create policy embedding_model_search on convo.embedding_model
for all to convo_search
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy embedding_model_search on convo.embedding_model is
'convo_private._model_dimension adds a model with its first embedding.';

grant select on convo.embedding_model to convo_app, convo_reader, convo_backup;
grant select, delete on convo.embedding_model to convo_service;
grant select, insert on convo.embedding_model to convo_search;
-- <<< sql/vector/policies/embedding_model.sql

-- >>> sql/vector/policies/embedding.sql
-- embedding: as the messages they belong to.
alter table convo.embedding enable row level security;
alter table convo.embedding force row level security;

create policy embedding_tenant on convo.embedding
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy embedding_tenant on convo.embedding is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy embedding_own on convo.embedding
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy embedding_own on convo.embedding is
'An application acts for one user.';

create policy embedding_service on convo.embedding
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy embedding_service on convo.embedding is
'Workers and support act for all users of the tenant.';

create policy embedding_reader on convo.embedding
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy embedding_reader on convo.embedding is
'Reports read the tenant.';

create policy embedding_backup on convo.embedding
for select to convo_backup using (true);
comment on policy embedding_backup on convo.embedding is
'A dump has every row.';

grant select, insert on convo.embedding to convo_app, convo_service;
grant update (revision, dimension, embedding, claimed_until)
on convo.embedding to convo_app, convo_service;
grant update (user_id), delete on convo.embedding to convo_service;
grant select on convo.embedding to convo_reader, convo_backup;
-- <<< sql/vector/policies/embedding.sql

-- >>> sql/vector/policies/embedding_progress.sql
-- embedding_progress: for workers only.
alter table convo.embedding_progress enable row level security;
alter table convo.embedding_progress force row level security;

create policy embedding_progress_tenant on convo.embedding_progress
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy embedding_progress_tenant on convo.embedding_progress is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy embedding_progress_reader on convo.embedding_progress
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy embedding_progress_reader on convo.embedding_progress is
'Reports read the tenant.';

create policy embedding_progress_service on convo.embedding_progress
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy embedding_progress_service on convo.embedding_progress is
'Workers note how far they are in their tenant.';

create policy embedding_progress_backup on convo.embedding_progress
for select to convo_backup using (true);
comment on policy embedding_progress_backup on convo.embedding_progress is
'A dump has every row.';

grant select, insert, delete on convo.embedding_progress to convo_service;
grant update (last_seq, updated_at) on convo.embedding_progress to convo_service;
grant select on convo.embedding_progress to convo_reader, convo_backup;
-- <<< sql/vector/policies/embedding_progress.sql

grant create on schema convo_private to convo_search;
set local role convo_search;

-- >>> sql/vector/functions/search/_model_dimension.sql
-- _model_dimension: how long a model's embeddings are in the tenant of the context.
-- A model that isn't known yet becomes known, with the length given.
-- SECURITY DEFINER, so that no role can add models but by storing an embedding.
create or replace function convo_private._model_dimension(model text, dimension integer)
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo.current_tenant_id();
    known integer;
begin
    select d.dimension into known
    from convo.embedding_model as d
    where d.tenant_id = tenant and d.model = _model_dimension.model;
    if not found then
        insert into convo.embedding_model (tenant_id, model, dimension)
        values (tenant, _model_dimension.model, _model_dimension.dimension)
        on conflict do nothing;
        select d.dimension into known
        from convo.embedding_model as d
        where d.tenant_id = tenant and d.model = _model_dimension.model;
    end if;
    return known;
end
$$;

comment on function convo_private._model_dimension(text, integer) is
'How long a model''s embeddings are in the tenant; an unknown one becomes known.';
revoke execute on function convo_private._model_dimension(text, integer) from public;
grant execute on function convo_private._model_dimension(text, integer)
to convo_app, convo_service;
-- <<< sql/vector/functions/search/_model_dimension.sql

set local role convo_owner;
revoke create on schema convo_private from convo_search;

-- >>> sql/vector/functions/search/_embedding_fault.sql
-- _embedding_fault: what is wrong with an embedding, or null.
-- Its length in space must be one that cosine distance can do with in single precision.
create or replace function convo._embedding_fault(embedding real[]) returns text
language sql immutable parallel safe
begin atomic
    select
        case
            when coalesce(cardinality(_embedding_fault.embedding), 0) = 0 then 'empty'
            when array_ndims(_embedding_fault.embedding) > 1
                then 'more than one dimension'
            when cardinality(_embedding_fault.embedding) > 16000
                then 'over 16000 numbers'
            when array_position(_embedding_fault.embedding, null) is not null
                then 'a null'
            when array_position(_embedding_fault.embedding, 'nan') is not null
                or array_position(_embedding_fault.embedding, 'infinity') is not null
                or array_position(_embedding_fault.embedding, '-infinity') is not null
                then 'a number that is not finite'
            when (
                select sqrt(sum(e.part::double precision * e.part))
                from unnest(_embedding_fault.embedding) as e (part)
            ) not between 1e-15 and 1e15 then 'too short or too long a vector'
        end;
end;

comment on function convo._embedding_fault(real[]) is
'What is wrong with an embedding, or null.';
revoke execute on function convo._embedding_fault(real[]) from public;
grant execute on function convo._embedding_fault(real[])
to convo_app, convo_service, convo_reader;
-- <<< sql/vector/functions/search/_embedding_fault.sql

-- >>> sql/vector/functions/search/_store_embedding.sql
-- _store_embedding: what store_embedding does, with the vector track.
-- A worker's claim says which revision the embedding is of: where the message was edited
-- since, it is stored for the old one, is not found, and the message is claimed again.
create or replace function convo._store_embedding(
    conversation_id uuid, seq integer, model text, embedding real[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    size constant integer := cardinality(_store_embedding.embedding);
    fault constant text := convo._embedding_fault(_store_embedding.embedding);
    expected integer;
    message record;
begin
    if fault is not null then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'embedding', 'reason', fault
        ));
    elsif coalesce(length(_store_embedding.model), 0) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'model', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    select m.user_id, m.revision into message
    from convo.message as m
    where m.tenant_id = tenant
        and m.conversation_id = _store_embedding.conversation_id
        and m.seq = _store_embedding.seq
        and m.deleted_at is null;
    if not found then
        if not exists (
            select
            from convo.conversation as c
            where c.tenant_id = tenant
                and c.conversation_id = _store_embedding.conversation_id
        ) then
            perform convo._fail_not_found(_store_embedding.conversation_id);
        end if;
        perform convo._fail('PC002', jsonb_build_object(
            'conversation_id', _store_embedding.conversation_id,
            'seq', _store_embedding.seq
        ));
    end if;

    expected := convo_private._model_dimension(_store_embedding.model, size);
    if expected <> size then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'embedding', 'dimension', size, 'expected', expected
        ));
    end if;
    insert into convo.embedding as e (
        tenant_id, conversation_id, seq, model, user_id, revision, dimension, embedding
    )
    values (
        tenant, _store_embedding.conversation_id, _store_embedding.seq,
        _store_embedding.model, message.user_id, message.revision, size,
        _store_embedding.embedding
    )
    on conflict on constraint embedding_pkey do update
    set revision = case
            when e.embedding is null then e.revision else excluded.revision
        end,
        dimension = excluded.dimension,
        embedding = excluded.embedding,
        claimed_until = null;
end
$$;

comment on function convo._store_embedding(uuid, integer, text, real[]) is
'What store_embedding does, with the vector track.';
revoke execute on function convo._store_embedding(uuid, integer, text, real[])
from public;
grant execute on function convo._store_embedding(uuid, integer, text, real[])
to convo_app, convo_service;
-- <<< sql/vector/functions/search/_store_embedding.sql

-- >>> sql/vector/functions/search/_claim_embeddings.sql
-- _claim_embeddings: what claim_embeddings does, with the vector track.
-- Looks into the conversations that changed since nothing was missing in them, and
-- leaves out messages that another claim holds at this moment. The claims themselves
-- are rows without a vector; one that ends unfulfilled is given out again.
create or replace function convo._claim_embeddings(model text, page_size integer)
returns table (conversation_id uuid, seq integer, revision integer, content text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    instant constant timestamptz(3) := clock_timestamp();
    room integer := convo._size('page_size', _claim_embeddings.page_size, 1000);
    claimed integer;
    changed record;
begin
    if coalesce(length(_claim_embeddings.model), 0) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'model', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    for changed in
        select c.conversation_id, c.user_id, c.last_seq, c.updated_at
        from convo.conversation as c
        left join convo.embedding_progress as p
            on p.tenant_id = c.tenant_id
                and p.conversation_id = c.conversation_id
                and p.model = _claim_embeddings.model
        where c.tenant_id = tenant
            and (p.last_seq, p.updated_at) is distinct from (c.last_seq, c.updated_at)
        order by c.conversation_id
    loop
        exit when room = 0;
        return query
        with missing as materialized (
            select m.seq, m.revision, m.content
            from convo.message as m
            left join convo.embedding as e
                on e.tenant_id = m.tenant_id
                    and e.conversation_id = m.conversation_id
                    and e.seq = m.seq
                    and e.model = _claim_embeddings.model
                    and e.revision = m.revision
            where m.tenant_id = tenant
                and m.conversation_id = changed.conversation_id
                and m.deleted_at is null
                and m.role <> 'system'
                and case
                    when e.claimed_until is null and e.seq is not null
                        or e.claimed_until > instant then false
                    else not convo._is_blank(m.content) -- which may be megabytes
                end
            order by m.seq
            limit room
            for no key update of m skip locked
        ),

        claim as (
            insert into convo.embedding as e (
                tenant_id, conversation_id, seq, model, user_id, revision, claimed_until
            )
            select
                tenant, changed.conversation_id, m.seq, _claim_embeddings.model,
                changed.user_id, m.revision, instant + '10 min'
            from missing as m
            on conflict on constraint embedding_pkey do update
            set revision = excluded.revision,
                dimension = null,
                embedding = null,
                claimed_until = excluded.claimed_until
            -- unless it was claimed or stored since this statement began
            where e.revision < excluded.revision or e.claimed_until <= instant
            returning e.seq
        )

        select changed.conversation_id, m.seq, m.revision, m.content
        from missing as m
        inner join claim as k on m.seq = k.seq;
        get diagnostics claimed = row_count;
        room := room - claimed;

        if claimed = 0 then
            insert into convo.embedding_progress as p (
                tenant_id, conversation_id, model, last_seq, updated_at
            )
            select
                tenant, changed.conversation_id, _claim_embeddings.model,
                changed.last_seq, changed.updated_at
            where not exists (
                select
                from convo.message as m
                left join convo.embedding as e
                    on e.tenant_id = m.tenant_id
                        and e.conversation_id = m.conversation_id
                        and e.seq = m.seq
                        and e.model = _claim_embeddings.model
                        and e.revision = m.revision
                where m.tenant_id = tenant
                    and m.conversation_id = changed.conversation_id
                    and m.deleted_at is null
                    and m.role <> 'system'
                    and case
                        when e.claimed_until is null and e.seq is not null then false
                        else not convo._is_blank(m.content)
                    end
            )
            on conflict on constraint embedding_progress_pkey do update
            set last_seq = excluded.last_seq, updated_at = excluded.updated_at;
        end if;
    end loop;
end
$$;

comment on function convo._claim_embeddings(text, integer) is
'What claim_embeddings does, with the vector track.';
revoke execute on function convo._claim_embeddings(text, integer) from public;
grant execute on function convo._claim_embeddings(text, integer) to convo_service;
-- <<< sql/vector/functions/search/_claim_embeddings.sql

-- >>> sql/vector/functions/search/_embedding_of.sql
-- _embedding_of: the embeddings that are stored of a message as it is now.
create or replace function convo._embedding_of(conversation convo.conversation, seq integer)
returns table (model text, embedding real[])
language sql stable rows 1
begin atomic
    select
        e.model,
        e.embedding::real[]
    from convo.embedding as e
    inner join convo.message as m
        on m.tenant_id = e.tenant_id
            and m.conversation_id = e.conversation_id
            and m.seq = e.seq
            and m.revision = e.revision
    where e.tenant_id = (_embedding_of.conversation).tenant_id
        and e.conversation_id = (_embedding_of.conversation).conversation_id
        and e.seq = _embedding_of.seq
        and e.embedding is not null;
end;

comment on function convo._embedding_of(convo.conversation, integer) is
'The embeddings that are stored of a message as it is now.';
revoke execute on function convo._embedding_of(convo.conversation, integer) from public;
grant execute on function convo._embedding_of(convo.conversation, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/vector/functions/search/_embedding_of.sql

-- >>> sql/vector/functions/search/_nearest_embeddings.sql
-- _nearest_embeddings: the messages whose embeddings are nearest by cosine, nearest first.
-- Exact for a user and within a conversation: over those rows and no others. Across a
-- tenant an HNSW index serves where somebody made one (docs/embeddings.md): it is on an
-- expression that has the dimension in its type, and serves only a query with the same
-- text. That is why this one statement is dynamic. What goes into its text is an integer
-- and the name of pgvector's schema, quoted. Planned for its values each time, it also
-- sees which partial index fits.
-- Messages are looked up nearest first and only until there are enough, so what has been
-- edited or deleted costs a look-up, no place.
-- errors: 22023 when there is no such model, or the embedding isn't one of its length
create or replace function convo._nearest_embeddings(
    embedding real[], model text, within_id uuid, page_size integer
) returns table (conversation_id uuid, seq integer, score real)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    size constant integer := cardinality(_nearest_embeddings.embedding);
    fault constant text := convo._embedding_fault(_nearest_embeddings.embedding);
    expected integer;
    is_wide constant boolean := _nearest_embeddings.within_id is null
        and (pg_has_role('convo_service', 'usage') or pg_has_role('convo_reader', 'usage'));
    pgvector record;
begin
    if fault is not null then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'embedding', 'reason', fault
        ));
    end if;
    select d.dimension into expected
    from convo.embedding_model as d
    where d.tenant_id = tenant and d.model = _nearest_embeddings.model;
    if not found then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'model', 'reason', 'no embedding of it was ever stored'
        ));
    elsif expected <> size then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'embedding', 'dimension', size, 'expected', expected
        ));
    end if;
    select n.nspname, e.extversion into pgvector
    from pg_catalog.pg_extension as e
    inner join pg_catalog.pg_namespace as n on e.extnamespace = n.oid
    where e.extname = 'vector';
    -- An index goes on until it has found enough of the tenant's rows, from 0.8 on.
    if is_wide and string_to_array(pgvector.extversion, '.')::integer[] >= '{0,8}' then
        perform set_config('hnsw.iterative_scan', 'strict_order', true);
    end if;
    return query execute format(
        $query$
        select c.conversation_id, c.seq, (1 - c.distance)::real
        from (
            select
                e.conversation_id, e.seq, e.revision,
                -- $6 is known when this is planned; a sum is in no index
                case when $6 then e.distance else e.distance + 0 end as distance
            from (
                select
                    i.*,
                    i.embedding::%1$s.vector(%2$s)
                        operator(%1$s.<=>) $1::%1$s.vector(%2$s) as distance
                from convo.embedding as i
            ) as e
            where e.tenant_id = $2
                and e.model = $3
                and e.dimension = %2$s
                and e.embedding is not null
                and ($4 is null or e.conversation_id = $4)
            order by distance
            limit (select 2147483647) -- see token_window: may stop early
        ) as c
        cross join lateral (
            select
            from convo.message as m
            where m.tenant_id = $2
                and m.conversation_id = c.conversation_id
                and m.seq = c.seq
                and m.revision = c.revision
                and m.deleted_at is null
            limit 1
        ) as m
        order by c.distance
        limit $5
        $query$,
        quote_ident(pgvector.nspname), size
    )
    using
        _nearest_embeddings.embedding, tenant, _nearest_embeddings.model,
        _nearest_embeddings.within_id, _nearest_embeddings.page_size, is_wide;
end
$$;

comment on function convo._nearest_embeddings(real[], text, uuid, integer) is
'The messages whose embeddings are nearest by cosine, nearest first.';
revoke execute on function convo._nearest_embeddings(real[], text, uuid, integer)
from public;
grant execute on function convo._nearest_embeddings(real[], text, uuid, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/vector/functions/search/_nearest_embeddings.sql

reset role;

set local role convo_owner;
insert into convo.schema_migration (track, version, name)
values ('vector', 1, '0001_embeddings');
reset role;

-- migrate:down
