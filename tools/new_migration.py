"""Write the next migration from what changed in sql/.

    python tools/new_migration.py add_x    the next number, changed files pasted;
                                           again, while it isn't committed: refreshed
    python tools/new_migration.py --check  exit code 1 when they lag behind sql/
    python tools/new_migration.py --track vector add_x
                                           the same in sql/vector, migrations/vector

A migration quotes a file of sql/ between `-- >>> path` and `-- <<< path`: one that is
new, or a function, which can be replaced. Anything else changes by hand: for it the
migration has a `TODO` between `-- === path digest`, which says which text it reached,
and `-- <<< path`. A refresh keeps what was written there, and the header.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
GONE = "gone"
OWNER = "convo_owner"
INSTALLER = ""
CORE = "core"
TRACKS = (CORE, "vector")
UP = "-- migrate:up\n"

HEADER = """\
-- {name}: {summary}
-- phase: {phase}
-- locks: {locks}
-- migrate:up
"""

GUARD = """\
set local lock_timeout = '5s';
set local convo.migration = '{name}';
set local standard_conforming_strings = on;

-- Outside a transaction the line above had no effect. Then the guard below fails, and
-- nothing after it may change anything, even where a client goes on after an error.
do $guard$
begin
    if current_setting('convo.migration', true) is distinct from '{name}' then
        set default_transaction_read_only = on;
    end if;
end
$guard$;

do $guard$
declare
    caller constant text := current_setting('role');
    ledger_owner name;
    newest integer := 0;
    is_applied boolean := false;
begin
    if current_setting('convo.migration', true) is distinct from '{name}' then
        raise exception using
            errcode = 'PC092',
            message = 'migration not in one transaction',
            detail = '{{"version": {version}}}',
            hint = 'Connect again and run psql with -1, or use pgconvo migrate.';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('pgconvo migration', 0));

    -- Only its owner and the groups may read the ledger, so look as the owner.
    select pg_get_userbyid(c.relowner) into ledger_owner
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
    where n.nspname = 'convo' and c.relname = 'schema_migration';
    if ledger_owner is not null then
        if not pg_has_role(current_user, ledger_owner, 'member') then
            raise insufficient_privilege using
                message = 'only a member of the owner may migrate',
                detail = json_build_object('owner', ledger_owner)::text,
                hint = 'Connect as the role that installed the schema.';
        end if;
        perform set_config('role', ledger_owner, true);
        select
            coalesce(max(m.version), 0),
            coalesce(bool_or(m.version = {version}), false)
        into newest, is_applied
        from convo.schema_migration as m
        where m.track = '{track}';
        perform set_config('role', caller, true);
    end if;

    if is_applied then
        raise exception using
            errcode = 'PC090',
            message = 'migration applied already',
            detail = json_build_object('version', {version}, 'newest', newest)::text,
            hint = 'Leave this file out.';
    elsif newest <> {version} - 1 then
        raise exception using
            errcode = 'PC091',
            message = 'migration out of order',
            detail = json_build_object('version', {version}, 'newest', newest)::text,
            hint = 'Apply the file that follows the newest one first.';
    end if;
end
$guard$;
"""

# A track builds on what the core was when it was written.
NEEDS_CORE = """\
do $core$
declare
    caller constant text := current_setting('role');
    newest integer := 0;
begin
    if exists (
        select
        from pg_catalog.pg_class as c
        inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
        where n.nspname = 'convo' and c.relname = 'schema_migration'
    ) then
        set local role convo_owner;
        select coalesce(max(m.version), 0) into newest
        from convo.schema_migration as m
        where m.track = 'core';
        perform set_config('role', caller, true);
    end if;
    if newest < {core} then
        raise exception using
            errcode = 'PC091',
            message = 'migration out of order',
            detail = json_build_object('core', newest, 'needed', {core})::text,
            hint = 'Apply the file that follows the newest one first.';
    end if;
end
$core$;
"""

# Definer functions belong to convo_search, which may create in the schema for this.
ENTER = """\
grant create on schema convo_private to convo_search;
set local role convo_search;
"""

LEAVE = """\
set local role convo_owner;
revoke create on schema convo_private from convo_search;
"""

LEDGER = """\
set local role convo_owner;
insert into convo.schema_migration (track, version, name)
values ('{track}', {version}, '{name}');
reset role;

-- migrate:down
"""


class Sources:
    """The files of sql/ and the migrations that quote them, of one track."""

    def __init__(self, root: Path, track: str = CORE) -> None:
        self.root = root
        self.track = track
        folder = "" if track == CORE else f"{track}/"
        self.prefix = f"sql/{folder}"
        self.directory = root / f"migrations/{folder}"
        self.migrations = sorted(self.directory.glob("[0-9][0-9][0-9][0-9]_*.sql"))
        self.makers: dict[str, str] = {}
        """The files in install order, each with the role that makes its objects."""
        role = OWNER if track == CORE else INSTALLER
        for line in (root / f"{self.prefix}install.sql").read_text().splitlines():
            if line.startswith("set local role "):
                role = line.split()[-1].rstrip(";")
            elif line.startswith(r"\ir "):
                self.makers[f"{self.prefix}{line.split()[1]}"] = role

    def text(self, path: str) -> str:
        """Return one file of sql/."""
        return (self.root / path).read_text().rstrip() + "\n"

    def changed(self) -> list[str]:
        """Return the paths that the migrations lag behind on, in install order."""
        quoted = self.quoted()
        now = {path: _digest(self.text(path)) for path in self.makers}
        gone = [p for p in quoted if p not in now and quoted[p] != GONE]
        return [p for p in now if now[p] != quoted.get(p)] + gone

    def quoted(self) -> dict[str, str]:
        """Return the digest of the text of each file that the migrations reached."""
        quoted: dict[str, str] = {}
        for migration in self.migrations:
            quoted |= _quoted(migration.read_text())
        return quoted

    def following(self, name: str, version: int, draft: str = "") -> str:
        """Return the next migration, with what changed in sql/.

        draft: its text so far; what was written by hand is taken from there.
        """
        header = HEADER.format(
            name=name,
            summary="TODO: what it changes, in one sentence.",
            phase="TODO: expand or contract",
            locks="TODO: on which tables, how strong, how long",
        )
        if draft:
            header = draft[: draft.index(UP) + len(UP)]
        parts = [
            header,
            GUARD.format(name=name, version=version, track=self.track),
        ]
        if self.track != CORE:
            core = len(Sources(self.root).migrations)
            parts.append(NEEDS_CORE.format(core=core))
        # Each migration of a track makes sure of its extension.
        installed = [p for p, maker in self.makers.items() if maker == INSTALLER]
        parts += [_block(path, self.text(path)) for path in installed]
        parts.append(f"set local role {OWNER};\n")
        reached = self.quoted()
        role = OWNER
        for path in self.changed():
            if path in installed:
                continue
            maker = self.makers.get(path, OWNER)
            if maker != role:
                parts.append(ENTER if role == OWNER else LEAVE)
                role = maker
            if path not in self.makers:
                parts.append(_by_hand(path, GONE, "drop what it made", draft))
            elif path.startswith(f"{self.prefix}functions/") or path not in reached:
                parts.append(_block(path, _replacing(self.text(path))))
            else:
                digest = _digest(self.text(path))
                parts.append(_by_hand(path, digest, "write the change by hand", draft))
        if role != OWNER:
            parts.append(LEAVE)
        parts.append("reset role;\n")
        parts.append(LEDGER.format(name=name, version=version, track=self.track))
        return "\n".join(parts)

    def sums(self) -> str:
        """Return what SHA256SUMS must hold."""
        paths = sorted(self.directory.glob("[0-9][0-9][0-9][0-9]_*.sql"))
        return "".join(
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
            for path in paths
        )

    def problems(self) -> list[str]:
        """Return what is wrong with the migrations, one line each."""
        found = [
            f"{path}: no migration has its present text" for path in self.changed()
        ]
        files = (self.root / self.prefix).rglob("*.sql")
        paths = {str(path.relative_to(self.root)) for path in files}
        install = f"{self.prefix}install.sql"
        if self.track == CORE:
            tracks = tuple(f"sql/{track}/" for track in TRACKS)
            paths = {path for path in paths if not path.startswith(tracks)}
        missing = sorted(paths - {install, *self.makers})
        found += [f"{path}: not listed in {install}" for path in missing]
        found += [
            f"{path.relative_to(self.root)}: has a TODO"
            for path in self.migrations
            if "TODO" in path.read_text()
        ]
        recorded = self.directory / "SHA256SUMS"
        if not recorded.exists() or recorded.read_text() != self.sums():
            name = recorded.relative_to(self.root)
            found.append(f"{name}: not what the files are")
        return found


def _quoted(migration: str) -> dict[str, str]:
    """Return the digest of the text of each sql/ file that a migration reaches."""
    pattern = r"^-- >>> (\S+)\n(.*?)^-- <<< \1$|^-- === (\S+) (\S+)$"
    return {
        path or by_hand: digest or _digest(text)
        for path, text, by_hand, digest in re.findall(
            pattern, migration, re.DOTALL | re.MULTILINE
        )
    }


def _digest(text: str) -> str:
    return hashlib.sha256(_replacing(text).encode()).hexdigest()[:16]


def _replacing(text: str) -> str:
    created = r"^create (?=(?:function|procedure|view) )"
    return re.sub(created, "create or replace ", text, flags=re.MULTILINE)


def _block(path: str, text: str) -> str:
    return f"-- >>> {path}\n{text}-- <<< {path}\n"


def _by_hand(path: str, digest: str, task: str, draft: str) -> str:
    """Return the part of a file that changes by hand, as far as it is in the draft."""
    written = re.search(
        rf"^-- === {re.escape(path)} (\S+)\n(.*?)^-- <<< {re.escape(path)}$",
        draft,
        re.DOTALL | re.MULTILINE,
    )
    text = f"-- TODO: {task}\n"
    if written:
        text = written[2]
        if written[1] != digest and "TODO" not in text:
            text = f"-- TODO: the file changed again\n{text}"
    return f"-- === {path} {digest}\n{text}-- <<< {path}\n"


def _is_committed(path: Path) -> bool:
    command = ["git", "ls-files", "--error-unmatch", path.name]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, check=False)
    return done.returncode == 0


def main() -> None:
    """Write a migration, or check those that there are."""
    parser = argparse.ArgumentParser(description="Write the next migration.")
    parser.add_argument("name", nargs="?", help="what it does, like add_x")
    parser.add_argument("--check", action="store_true", help="only look for mistakes")
    parser.add_argument("--track", choices=TRACKS, default=CORE, help="core, unless")
    args = parser.parse_args()
    if args.check:
        problems = [p for track in TRACKS for p in Sources(ROOT, track).problems()]
        print("\n".join(problems) or "migrations and sql/ agree")
        sys.exit(bool(problems))
    if not re.fullmatch(r"[a-z0-9_]{1,60}", args.name or ""):
        parser.error("NAME: lower-case letters, digits and _, like NAME=add_x")
    sources = Sources(ROOT, args.track)
    draft = ""
    newest = sources.migrations[-1:]
    if newest and newest[0].stem[5:] == args.name and not _is_committed(newest[0]):
        draft = newest[0].read_text()
        sources.migrations.pop()
    number = len(sources.migrations) + 1
    name = f"{number:04}_{args.name}"
    text = sources.following(name, number, draft)
    sources.directory.mkdir(exist_ok=True)
    (sources.directory / f"{name}.sql").write_text(text)
    (sources.directory / "SHA256SUMS").write_text(sources.sums())
    print(sources.directory.relative_to(ROOT) / f"{name}.sql")


if __name__ == "__main__":
    main()
