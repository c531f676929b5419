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
