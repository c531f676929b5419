-- _embedding_fault: what is wrong with an embedding, or null.
-- Its length in space must be one that cosine distance can do with in single precision.
create function convo._embedding_fault(embedding real[]) returns text
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
