"""A PostgreSQL of Debian's package for as long as a test needs one, without its service."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_USER = "postgres"


def programs() -> Path | None:
    """The folder of the newest PostgreSQL's programs; None where the package `postgresql` is missing."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


class Postgres:
    """A server that listens on a socket in its own folder."""

    def __init__(self, folder: Path, bin_dir: Path) -> None:
        self._data = folder / "data"
        self._folder = folder
        self._bin = bin_dir

    def url(self, database: str) -> str:
        """The URL of a database."""
        return f"postgresql://{_USER}@/{database}?host={self._folder}"

    def start(self) -> None:
        """Start it, on what was there before."""
        # durable as in production: -F would leave out fsync only, which a kill does not notice
        options = f"-F -k {self._folder} -c listen_addresses='' -c max_connections=40"
        log = self._folder / "log"
        self._run([str(self._bin / "pg_ctl"), "-D", str(self._data), "-l", str(log), "-w", "-o", options, "start"])

    def stop(self, how: str = "fast") -> None:
        """Stop it; `immediate` is like a crash."""
        self._run([str(self._bin / "pg_ctl"), "-D", str(self._data), "-w", "-m", how, "stop"])

    def initialise(self) -> None:
        """Make the folder of its data."""
        auth = ["-A", "trust", "-U", _USER, "-E", "UTF8", "--no-sync"]
        self._run([str(self._bin / "initdb"), "-D", str(self._data), *auth])

    def create(self, database: str) -> str:
        """Make an empty database. Returns its URL."""
        self._run([str(self._bin / "createdb"), "-h", str(self._folder), "-U", _USER, database])
        return self.url(database)

    def _run(self, command: Sequence[str]) -> None:
        demoted = _USER if os.geteuid() == 0 else None
        done = subprocess.run(
            command, user=demoted, cwd=self._folder, capture_output=True, text=True, check=False, timeout=120,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


@contextmanager
def running() -> Iterator[Postgres]:
    """A server of its own."""
    bin_dir = programs()
    assert bin_dir is not None, "Debian's package postgresql is missing"
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path is short
    if os.geteuid() == 0:
        os.chown(folder, pwd.getpwnam(_USER).pw_uid, -1)
    server = Postgres(folder, bin_dir)
    try:
        server.initialise()
        server.start()
        yield server
        server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
