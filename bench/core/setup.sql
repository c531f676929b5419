-- What the benchmark runs on the server, in loops that give microseconds a call.
create schema bench;
grant usage on schema bench to public;

-- A function of the context, many times.
create function bench.context(expression text, times integer) returns double precision
language plpgsql as $$
declare
    elapsed double precision;
begin
    -- The loop itself costs as much with a constant: the caller takes it away.
    execute format(
        'create function pg_temp.context_loop(times integer) returns double precision
        language plpgsql as $body$
        declare
            started constant timestamptz := clock_timestamp();
        begin
            for i in 1 .. times loop
                perform %s;
            end loop;
            return extract(epoch from clock_timestamp() - started) * 1e6 / times;
        end
        $body$',
        expression
    );
    execute 'select pg_temp.context_loop($1)' into elapsed using times;
    drop function pg_temp.context_loop(integer);
    return elapsed;
end
$$;

-- Appends, each in a transaction of its own: procedures that commit.
create function bench.insert_alone(conversation uuid, seq integer, content text)
returns integer
language plpgsql as $$
#variable_conflict use_variable
begin
    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, tokens, is_estimated,
        is_empty, group_seq, metadata, created_at
    )
    values (
        'bench', conversation, seq, 'ann', 'user', content, 100, false, false, seq, '{}',
        clock_timestamp()
    );
    return seq;
end
$$;

create function bench.update_and_insert(conversation uuid, content text)
returns integer
language plpgsql as $$
#variable_conflict use_variable
declare
    new_seq integer;
begin
    update convo.conversation as c
    set last_seq = c.last_seq + 1,
        message_count = c.message_count + 1,
        token_total = c.token_total + 100,
        body_count = c.body_count + 1,
        body_tokens = c.body_tokens + 100,
        updated_at = greatest(c.updated_at, clock_timestamp())
    where c.tenant_id = 'bench' and c.conversation_id = conversation
    returning c.last_seq into new_seq;
    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, tokens, is_estimated,
        is_empty, group_seq, metadata, created_at
    )
    values (
        'bench', conversation, new_seq, 'ann', 'user', content, 100, false, false, new_seq,
        '{}', clock_timestamp()
    );
    return new_seq;
end
$$;

create procedure bench.append(
    variant text, conversation uuid, times integer, inout elapsed double precision
)
language plpgsql as $$
declare
    content constant text := repeat('some text ', 40);
    started constant timestamptz := clock_timestamp();
    first_seq constant integer := case
        when variant = 'insert alone'
            then (
                select coalesce(max(m.seq), 0)
                from convo.message as m
                where m.tenant_id = 'bench' and m.conversation_id = conversation
            )
    end;
begin
    for i in 1 .. times loop
        if variant = 'insert alone' then
            perform bench.insert_alone(conversation, first_seq + i, content);
        elsif variant = 'update and insert' then
            perform bench.update_and_insert(conversation, content);
        elsif variant = 'append_message' then
            perform convo.append_message(conversation, 'user', content, 100);
        elsif variant = 'append_message, estimated' then
            perform convo.append_message(conversation, 'user', content);
        else
            perform convo.append_message(
                conversation, 'user', content, 100, idempotency_key => i::text
            );
        end if;
        commit;
    end loop;
    elapsed := extract(epoch from clock_timestamp() - started) * 1e6 / times;
end
$$;

-- A conversation of so many messages, for the foreign keys' sake with its counters.
create procedure bench.make_conversations(
    conversations integer, messages integer, first_id integer default null,
    age interval default '0'
)
language plpgsql as $$
#variable_conflict use_variable
begin
    set local session_replication_role = replica; -- no foreign key checks, for speed
    create temporary table made on commit drop as
    select
        coalesce(
            lpad(to_hex(first_id), 32, '0')::uuid, gen_random_uuid()
        ) as conversation_id
    from generate_series(1, conversations);
    insert into convo.conversation (
        tenant_id, conversation_id, user_id, retention_class, last_seq, message_count,
        token_total, body_count, body_tokens, created_at, updated_at
    )
    select
        'bench', conversation_id, 'ann', 'standard', messages, messages, 100 * messages,
        messages, 100 * messages, now() - age, now() - age
    from made;
    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, tokens, is_estimated,
        is_empty, group_seq, created_at
    )
    select
        'bench', conversation_id, n, 'ann', (array['user', 'assistant'])[1 + n % 2],
        repeat(chr(97 + n % 26) || 'ome text ', 20 + n % 40), 100, false, false, n, now() - age
    from made
    cross join generate_series(1, messages) as n;
end
$$;
