-- install: the vector track as it is now, for psql -1, after sql/install.sql.
\ir extension.sql
set local role convo_owner;

\ir tables/embedding_model.sql
\ir tables/embedding.sql
\ir tables/embedding_progress.sql

\ir policies/embedding_model.sql
\ir policies/embedding.sql
\ir policies/embedding_progress.sql

-- Definer functions belong to convo_search, which may create in the schema for this.
grant create on schema convo_private to convo_search;
set local role convo_search;
\ir functions/search/_model_dimension.sql
set local role convo_owner;
revoke create on schema convo_private from convo_search;

\ir functions/search/_embedding_fault.sql
\ir functions/search/_store_embedding.sql
\ir functions/search/_claim_embeddings.sql
\ir functions/search/_embedding_of.sql
\ir functions/search/_nearest_embeddings.sql

reset role;
