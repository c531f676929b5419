"""Every example in README.md and docs/ runs, and prints what stands below it.

A fenced block follows a comment that says how it runs:

    <!-- example: as=app -->          as that login, in the page's current database
    <!-- example: database=empty -->  from here on in a new database, without pgconvo
    <!-- example: database=new -->    from here on in a new one with pgconvo
    <!-- example: user=someone -->    console: $DSN names that user
    <!-- not run: reason -->

What psql and Python print ends with the text block that follows, if there is one.
In a console block each `$` line prints exactly the lines below it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LOGINS = {"app", "service", "reader", "maintainer", "backup"}
BLOCK = re.compile(
    r"(?:^<!-- (?P<kind>example|not run): (?P<how>[^\n]*) -->\n)?"
    r"^```(?P<language>\w+)\n(?P<code>.*?)^```\n"
    r"(?:^```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


class Page:
    """Runs the examples of one page, one after another."""

    def __init__(self, folder, bindir, pg_server, make_database, template):
        self.folder, self.bindir = folder, bindir
        self.pg_server, self.make_database = pg_server, make_database
        self.template = template
        self.roles = self.server_roles()
        self.use("new")

    def server_roles(self):
        with psycopg.connect(self.pg_server.dsn()) as conn:
            return {name for (name,) in conn.execute("select rolname from pg_roles")}

    def use(self, database):
        template = self.template if database == "new" else "template1"
        self.database = conninfo_to_dict(self.make_database(template))["dbname"]

    def dsn(self, user):
        return self.pg_server.dsn(self.database, user)

    def run(self, *command, user="postgres", stdin=None):
        path = [str(self.bindir), str(Path(sys.executable).parent), os.environ["PATH"]]
        environ = {**os.environ, "DSN": self.dsn(user), "COLUMNS": "80"}
        done = subprocess.run(
            command,
            input=stdin,
            env={**environ, "PATH": os.pathsep.join(path)},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    def example(self, language, code, output, user="postgres", **how):
        if "database" in how:
            self.use(how["database"])
        user = how.get("as", user)
        user = f"test_{user}" if user in LOGINS else user
        if language == "console":
            self.console(code, user)
            return
        if language == "sql":
            printed = self.run("psql", "-X", self.dsn(user), user=user, stdin=code)
            is_error = "ERROR:" in printed or "error:" in printed
            assert not is_error or (output and "ERROR:" in output), printed
        else:
            assert language == "python"
            code = re.sub(r'"postgresql://.*?"', repr(self.dsn(user)), code)
            printed = self.run(sys.executable, "-c", code)
            assert "Traceback" not in printed, printed
        if output is not None:
            assert printed.removesuffix("COMMIT\n").endswith(
                output.removesuffix("COMMIT\n")
            ), printed

    def console(self, code, user):
        for command, output in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", code, re.M):
            printed = self.run("bash", "-c", command, user=user)
            assert printed == output, f"{command}\n{printed}"

    def close(self):
        """Drop the databases' roles, so that the next page finds none of them."""
        with psycopg.connect(self.pg_server.dsn(), autocommit=True) as conn:
            names = [
                name
                for (name,) in conn.execute(
                    "select datname from pg_database where datname like 'test\\_%'"
                )
            ]
        new = sorted(self.server_roles() - self.roles)
        for name in [*names, "postgres"]:
            with psycopg.connect(self.pg_server.dsn(name), autocommit=True) as conn:
                for role in new:
                    conn.execute(f"drop owned by {role}")
        with psycopg.connect(self.pg_server.dsn(), autocommit=True) as conn:
            for role in new:
                conn.execute(f"drop role {role}")


@pytest.fixture
def page(tmp_path, bindir, pg_server, pg_template, make_database):
    (tmp_path / "migrations").symlink_to(ROOT / "migrations")
    page = Page(tmp_path, bindir, pg_server, make_database, pg_template.template_dbname)
    yield page
    page.close()


def blocks(path):
    return [match.groupdict() for match in BLOCK.finditer(path.read_text())]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_examples(path, page):
    for block in blocks(path):
        if block["kind"] == "example":
            how = dict(pair.split("=") for pair in block["how"].split())
            page.example(block["language"], block["code"], block["output"], **how)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_example_says_how_it_runs(path):
    for block in blocks(path):
        assert block["kind"] or block["language"] == "text", block["code"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", path.read_text()):
        file, _, anchor = target.partition("#")
        linked = path.parent / file if file else path
        assert linked.exists(), target
        assert not anchor or f"### {anchor}\n" in linked.read_text(), target
