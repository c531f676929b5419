-- _stepped_budget: the budget of the window when eviction goes in steps.
-- As the conversation grows, what has been evicted stays a whole number of steps, so
-- the window begins at the same message for many turns.
-- in: all live tokens, the budget, the step (0: no steps)
create function convo._stepped_budget(total bigint, budget bigint, step integer)
returns bigint
language sql immutable parallel safe
return case
    when _stepped_budget.step = 0 or _stepped_budget.total <= _stepped_budget.budget
        then _stepped_budget.budget
    else _stepped_budget.total - _stepped_budget.step * (
            (_stepped_budget.total - _stepped_budget.budget + _stepped_budget.step - 1)
            / _stepped_budget.step
        )
end;

comment on function convo._stepped_budget(bigint, bigint, integer) is
'The budget of the window when eviction goes in steps.';
revoke execute on function convo._stepped_budget(bigint, bigint, integer) from public;
grant execute on function convo._stepped_budget(bigint, bigint, integer)
to convo_app, convo_service, convo_reader;
