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
