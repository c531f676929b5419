-- _judge_group: which live messages of a group a provider would accept.
-- A call needs a result, a result needs a call, and of two results for one call the
-- first counts. Something that says nothing stays only beside something that does, as
-- reasoning beside its answer. What a user says beside a result stays in any case.
-- in: the messages; whether calls may be open
-- out: the messages in order of seq, with a reason where one is left out
create function convo._judge_group(
    members convo._group_member[], may_be_open boolean
) returns convo._group_member[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    judged convo._group_member[] := _judge_group.members;
    open_ids text[] := '{}';
    place integer;
    is_answering boolean;
begin
    -- most messages stand alone
    if cardinality(judged) = 1
        and coalesce(judged[1].call_ids, judged[1].result_ids) is null
    then
        judged[1].reason := case when judged[1].is_empty then 'empty' end;
        return judged;
    end if;
    judged := array(select m from unnest(judged) as m order by m.seq);
    for n in 1 .. cardinality(judged) loop
        open_ids := open_ids || judged[n].call_ids;
        is_answering := judged[n].result_ids is null;
        for r in 1 .. coalesce(cardinality(judged[n].result_ids), 0) loop
            place := array_position(open_ids, judged[n].result_ids[r]);
            if place is not null then
                open_ids := open_ids[:place - 1] || open_ids[place + 1:];
                is_answering := true;
            end if;
        end loop;
        if not is_answering and judged[n].is_empty then
            judged[n].reason := 'result without a call';
        end if;
    end loop;
    if cardinality(open_ids) > 0 and not _judge_group.may_be_open then
        for n in 1 .. cardinality(judged) loop
            if judged[n].result_ids is null or judged[n].is_empty then
                judged[n].reason := 'call without a result';
            end if;
        end loop;
    end if;
    if not exists (
        select from unnest(judged) as m where m.reason is null and not m.is_empty
    ) then
        for n in 1 .. cardinality(judged) loop
            judged[n].reason := coalesce(judged[n].reason, 'empty');
        end loop;
    end if;
    return judged;
end
$$;

comment on function convo._judge_group(convo._group_member[], boolean) is
'Which live messages of a group a provider would accept.';
revoke execute on function convo._judge_group(convo._group_member[], boolean)
from public;
grant execute on function convo._judge_group(convo._group_member[], boolean)
to convo_app, convo_service, convo_reader;
