-- _model_dimension: how long a model's embeddings are in the tenant of the context.
-- A model that isn't known yet becomes known, with the length given.
-- SECURITY DEFINER, so that no role can add models but by storing an embedding.
create function convo_private._model_dimension(model text, dimension integer)
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
