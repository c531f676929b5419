"""plpgsql_check reads every body: wrong names, unused variables, wrong volatility."""

import pytest

# What is meant as it is: casts on assignment; convo._fail, which always raises, as the
# last statement; and that same function STABLE, so that no plan raises it early.
MEANT = [
    "target type is different type than source type",
    "control reached end of function without RETURN",
    "routine is marked as STABLE, should be IMMUTABLE",
]


def test_plpgsql_check_finds_nothing(db):
    available = "select from pg_available_extensions where name = 'plpgsql_check'"
    if db.execute(available).fetchone() is None:
        pytest.skip("this server has no plpgsql_check: PG=15 has it on Debian")
    db.execute("create extension plpgsql_check schema public")
    # Planning a query runs its stable functions, and these want a context.
    db.execute("set convo.tenant_id = 'a'")
    db.execute("set convo.user_id = 'a'")
    found = db.execute(
        """
        select p.oid::regprocedure::text, c.lineno, c.level, c.sqlstate, c.message
        from pg_proc as p
        join pg_language as l on l.oid = p.prolang and l.lanname = 'plpgsql'
        cross join public.plpgsql_check_function_tb(
            p.oid, performance_warnings => true, extra_warnings => true,
            security_warnings => true
        ) as c
        where p.pronamespace in ('convo'::regnamespace, 'convo_private'::regnamespace)
            and not (c.message = any (%s) and c.level <> 'error')
            -- what RETURN QUERY EXECUTE gives is seen when it runs
            and not (
                p.proname = '_nearest_embeddings'
                and c.message ~ '^OUT variable .* is maybe unmodified$'
            )
        order by 1, 2
        """,
        (MEANT,),
    ).fetchall()
    assert "\n".join(": ".join(map(str, row)) for row in found) == ""
