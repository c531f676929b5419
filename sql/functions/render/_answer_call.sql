-- _answer_call: a result that knows its call.
-- Its own bytes are of no use if the call goes out in other words.
create function convo._answer_call(
    block convo._render_block, call convo._render_block
) returns convo._render_block
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    answer convo._render_block := _answer_call.block;
begin
    answer.unit := (_answer_call.call).unit;
    answer.call := (_answer_call.call).call;
    answer.call_id := (_answer_call.call).call_id;
    answer.call_number := (_answer_call.call).call_number;
    if answer.is_native and not (_answer_call.call).is_native then
        answer.is_native := false;
        answer.is_whole := false;
        answer.raw := null;
    end if;
    return answer;
end
$$;

comment on function convo._answer_call(convo._render_block, convo._render_block) is
'A result that knows its call.';
revoke execute on function convo._answer_call(convo._render_block, convo._render_block)
from public;
grant execute on function convo._answer_call(convo._render_block, convo._render_block)
to convo_app, convo_service, convo_reader;
