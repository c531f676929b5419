-- context_key: the owner manages it; only convo_private._verified_context reads it.
alter table convo_private.context_key enable row level security;
alter table convo_private.context_key force row level security;

create policy context_key_owner on convo_private.context_key
for all to convo_owner using (true) with check (true);
comment on policy context_key_owner on convo_private.context_key is
'The owner adds keys and lets them expire.';

create policy context_key_search on convo_private.context_key
for select to convo_search using (true);
comment on policy context_key_search on convo_private.context_key is
'convo_private._verified_context looks keys up.';

create policy context_key_backup on convo_private.context_key
for select to convo_backup using (true);
comment on policy context_key_backup on convo_private.context_key is
'A dump has every row.';

grant select on convo_private.context_key to convo_search, convo_backup;
