-- model_price: everybody reads it; the owner writes it, since a tenant's own login must
-- not change what others are billed.
alter table convo.model_price enable row level security;
alter table convo.model_price force row level security;

create policy model_price_owner on convo.model_price
for all to convo_owner using (true) with check (true);
comment on policy model_price_owner on convo.model_price is
'Prices are loaded by a member of the owner.';

create policy model_price_group on convo.model_price
for select to convo_app, convo_service, convo_reader, convo_backup using (true);
comment on policy model_price_group on convo.model_price is
'Prices are no secret, and recording usage needs them.';

grant select on convo.model_price
to convo_app, convo_service, convo_reader, convo_backup;
