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
