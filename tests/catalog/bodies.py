"""The bodies of the functions, parsed by PostgreSQL's own grammar.

What the server keeps of a SQL body has every name resolved, so how arguments were
written is read from sql/; everything else comes from the catalogs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pglast
from pglast import ast
from psycopg import Connection

SOURCES = Path(__file__).parents[2] / "sql"
# An HNSW index serves only a query that has the dimension in its text.
MAY_EXECUTE = {"_nearest_embeddings"}
# The purge looks for what is due in every tenant that has a rule: it begins there.
BEGINS_WITH = {"purge": "retention_policy", "_due_conversations": "retention_policy"}
FORBIDDEN = {
    "now": "is the same all through a transaction: clock_timestamp()",
    "transaction_timestamp": "is the same all through a transaction",
    "current_timestamp": "is the same all through a transaction",
    "set_seed": "has no place here",
    "dblink": "leaves the database",
}


@dataclass
class Body:
    """A function: its name, its arguments, and each SQL statement or expression."""

    name: str
    arguments: set[str]
    statements: list[ast.Node]
    has_dynamic_sql: bool = False


def read(definition: str) -> Body:
    """Parse a CREATE FUNCTION or CREATE PROCEDURE statement."""
    statement = pglast.parse_sql(definition)[0].stmt
    assert isinstance(statement, ast.CreateFunctionStmt)
    name = statement.funcname[-1].sval
    modes = pglast.enums.FunctionParameterMode
    arguments = {
        parameter.name
        for parameter in statement.parameters or ()
        if parameter.mode not in (modes.FUNC_PARAM_TABLE, modes.FUNC_PARAM_OUT)
    }
    if statement.sql_body is not None:
        return Body(name, arguments, list(nodes(statement.sql_body)))
    parsed = pglast.parse_plpgsql(without_our_types(definition))
    statements = [expression(found) for found in members(parsed, "PLpgSQL_expr")]
    # The parser leaves out what a bare variable returns.
    for variable in re.findall(r"\breturn (?:next )?(\w+);", definition):
        statements.append(pglast.parse_sql(f"select {variable}")[0].stmt)
    return Body(
        name, arguments, statements, any(members(parsed, "PLpgSQL_stmt_dynexecute"))
    )


def without_our_types(definition: str) -> str:
    """Rename our types: the parser of plpgsql has no catalogs to look them up in."""
    definition = re.sub(r"\bconvo(_private)?\.\w+\[\]", "text[]", definition)
    return re.sub(r"\bconvo(_private)?\.", "public.", definition)


def members(tree: Any, key: str) -> Iterator[Any]:
    """Yield every value of a key in nested dictionaries and lists."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == key:
                yield value
            yield from members(value, key)
    elif isinstance(tree, list):
        for value in tree:
            yield from members(value, key)


def expression(found: dict[str, Any]) -> ast.Node:
    """Parse an expression or a statement of a plpgsql body."""
    query = found["query"]
    if found["parseMode"] >= 3:  # an assignment
        query = re.split(r":?=", query, maxsplit=1)[1]
    if found["parseMode"] >= 2:
        query = f"select {query}"
    return pglast.parse_sql(query)[0].stmt


def nodes(value: Any) -> Iterator[ast.Node]:
    if isinstance(value, ast.Node):
        yield value
    elif isinstance(value, tuple):
        for element in value:
            yield from nodes(element)


def walk(value: Any) -> Iterator[ast.Node]:
    """Yield a node and everything below it."""
    for node in nodes(value):
        yield node
        for slot in node:
            yield from walk(getattr(node, slot))


def from_catalog(conn: Connection) -> list[Body]:
    rows = conn.execute(
        """
        select pg_get_functiondef(p.oid)
        from pg_proc as p
        where p.pronamespace in ('convo'::regnamespace, 'convo_private'::regnamespace)
            and p.prokind <> 'a'
        """
    )
    return [read(definition) for (definition,) in rows]


def from_source(text: str) -> list[Body]:
    found = []
    for raw in pglast.parse_sql(text):
        if isinstance(raw.stmt, ast.CreateFunctionStmt):
            start = raw.stmt_location or 0
            end = start + raw.stmt_len if raw.stmt_len else None
            found.append(read(text[start:end]))
    return found


def dotted(node: ast.ColumnRef) -> list[str]:
    return [getattr(field, "sval", "*") for field in node.fields]


def forbidden(conn: Connection) -> list[str]:
    """OFFSET, the clock of the transaction, advisory locks, dynamic SQL."""
    found = []
    for body in from_catalog(conn):
        if body.has_dynamic_sql and body.name not in MAY_EXECUTE:
            found.append(f"{body.name}: EXECUTE")
        for node in walk(tuple(body.statements)):
            if isinstance(node, ast.SelectStmt) and node.limitOffset:
                found.append(f"{body.name}: OFFSET")
            elif isinstance(node, ast.SQLValueFunction):
                name = str(node.op).rsplit("SVFOP_", 1)[-1].lower()
                if name.startswith(("current_time", "current_date", "localtime")):
                    found.append(f"{body.name}: {name}")
            elif isinstance(node, ast.FuncCall):
                name = node.funcname[-1].sval
                if name in FORBIDDEN or "advisory" in name or name.startswith("lo_"):
                    found.append(f"{body.name}: {name}")
    return sorted(found)


def columns_of(conn: Connection) -> dict[str, set[str]]:
    """The columns of each table of ours, by its bare name."""
    rows = conn.execute(
        """
        select c.relname, array_agg(a.attname::text)
        from pg_class as c
        join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
        where c.relnamespace in ('convo'::regnamespace, 'convo_private'::regnamespace)
            and c.relkind in ('r', 'p', 'v')
            and not a.attisdropped
        group by c.relname
        """
    )
    return {name: set(columns) for name, columns in rows}


def tables_in(statement: ast.Node, columns: dict[str, set[str]]) -> dict[str, str]:
    """The tables of ours that a statement reads, by the name that they go by.

    A name without a schema is that of a WITH query.
    """
    targets = {
        id(node.relation)
        for node in walk(statement)
        if isinstance(node, ast.InsertStmt)
    }
    return {
        node.alias.aliasname if node.alias else node.relname: node.relname
        for node in walk(statement)
        if isinstance(node, ast.RangeVar)
        and node.schemaname
        and node.relname in columns
        and id(node) not in targets
    }


def unqualified_columns(conn: Connection) -> list[str]:
    """Bare names that are columns of a table in the same statement.

    The column would win over a variable of that name, today's or tomorrow's.
    """
    columns = columns_of(conn)
    found = set()
    for body in from_catalog(conn):
        for statement in body.statements:
            tables = tables_in(statement, columns).values()
            known = set().union(*(columns[table] for table in tables))
            for node in walk(statement):
                if isinstance(node, ast.ColumnRef) and len(node.fields) == 1:
                    (name,) = dotted(node)
                    if name in known:
                        found.add(f"{body.name}: {name}")
    return sorted(found)


def unqualified_arguments(conn: Connection, source: str | None = None) -> list[str]:
    """Arguments that a body names without the function's name before them."""
    texts = (
        [source]
        if source
        else [f.read_text() for f in SOURCES.glob("**/functions/**/*.sql")]
    )
    read_here = [body for text in texts for body in from_source(text)]
    found = set()
    for body in read_here:
        for statement in body.statements:
            tables = {n.aliasname for n in walk(statement) if isinstance(n, ast.Alias)}
            found |= {
                f"{body.name}: {dotted(node)[0]}"
                for node in walk(statement)
                if isinstance(node, ast.ColumnRef)
                and dotted(node)[0] in body.arguments
                and (len(node.fields) == 1 or dotted(node)[0] not in tables)
            }
    if source is None:
        missing = {body.name for body in from_catalog(conn)} - {
            body.name for body in read_here
        }
        found |= {f"{name}: not in sql/functions" for name in missing}
    return sorted(found)


def unfenced_statements(conn: Connection) -> list[str]:
    """Tables in a statement whose tenant_id is not compared with the caller's tenant.

    Directly, or with the tenant_id of another table in the statement that is.
    """
    columns = columns_of(conn)
    fenced = {name: c for name, c in columns.items() if "tenant_id" in c}
    fenced.pop("tenant_login")
    found = set()
    for body in from_catalog(conn):
        for statement in body.statements:
            found |= {
                f"{body.name}: {table}"
                for table in unanchored(statement, fenced, BEGINS_WITH.get(body.name))
            }
            for node in walk(statement):
                if (
                    isinstance(node, ast.InsertStmt)
                    and node.relation.relname in fenced
                    and "tenant_id" not in [target.name for target in node.cols or ()]
                ):
                    found.add(f"{body.name}: insert into {node.relation.relname}")
    return sorted(found)


def unanchored(
    statement: ast.Node, fenced: dict[str, set[str]], anchor: str | None
) -> list[str]:
    """The fenced tables of a statement that no chain of equalities ties to a tenant."""
    tables = tables_in(statement, fenced)
    tied = {alias for alias, name in tables.items() if name == anchor}
    subqueries = [
        node for node in walk(statement) if isinstance(node, ast.RangeSubselect)
    ]
    names = tables.keys() | {node.alias.aliasname for node in subqueries}
    links = [
        {subquery.alias.aliasname, dotted(node.val)[0]}
        for subquery in subqueries
        for node in walk(subquery)
        if isinstance(node, ast.ResTarget) and is_tenant_of(node.val, names)
    ]
    for node in walk(statement):
        if isinstance(node, ast.A_Expr) and node.name[-1].sval == "=":
            sides = (node.lexpr, node.rexpr)
            named = {dotted(side)[0] for side in sides if is_tenant_of(side, names)}
            if all(is_tenant_of(side, names) for side in sides):
                links.append(named)
            else:
                tied |= named
    while more := set().union(*(link for link in links if link & tied)) - tied:
        tied |= more
    return sorted(tables[alias] for alias in tables.keys() - tied)


def is_tenant_of(node: Any, names: set[str]) -> bool:
    if not isinstance(node, ast.ColumnRef):
        return False
    return dotted(node)[0] in names and dotted(node)[1:] == ["tenant_id"]
