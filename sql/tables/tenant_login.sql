-- tenant_login: logins whose tenant is not taken from settings.
create table convo_private.tenant_login (
    role_name name not null,
    mode text not null,
    tenant_id text collate "C",
    constraint tenant_login_pkey primary key (role_name),
    constraint tenant_login_mode_check check (mode in ('settings', 'pinned', 'token')),
    constraint tenant_login_tenant_id_check check (
        (mode = 'pinned') = (tenant_id is not null)
        and length(tenant_id) between 1 and 255
    )
);

comment on table convo_private.tenant_login is
'How a login says who is asking. A login without a row uses settings or JWT claims.';
comment on column convo_private.tenant_login.role_name is
'The login (session_user).';
comment on column convo_private.tenant_login.mode is
'settings: from settings or claims; pinned: always the tenant named here; token: only '
'from a signed token.';
comment on column convo_private.tenant_login.tenant_id is
'The tenant of a pinned login.';
