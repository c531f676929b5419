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
