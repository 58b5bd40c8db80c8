"""One process at a time writes the history, even while two replicas run for a moment."""

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from synergy_dashboard.store.engine import WRITES, is_sqlite

_LEADER_LOCK = 0x53594E46
"""Key of the advisory lock in PostgreSQL."""


class NotLeadingError(RuntimeError):
    """This process has no right to write."""


class Leader:
    """The right to write: a lock of the connection that makes all writes. If the connection breaks, the lock is
    released and no write can follow. A SQLite file has a lock file beside it, which the kernel unlocks when its holder
    ends."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None
        self._file: TextIOWrapper | None = None
        self._one_at_a_time = threading.Lock()

    def lead(self) -> bool:
        """Try to get the right to write; True if this process has it."""
        with self._one_at_a_time:
            if self._connection is not None:
                return True
            if not self._lock_file():
                return False
            self._connection = self._engine.connect().execution_options(**{WRITES: True})
            if not is_sqlite(self._engine) and not self._lock_database(self._connection):
                self._drop()
            return self._connection is not None

    def resign(self) -> None:
        """Give up the right to write."""
        with self._one_at_a_time:
            self._drop()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction. An error in it ends the right to write."""
        with self._one_at_a_time:
            if self._connection is None:
                raise NotLeadingError("only who leads may write")
            try:
                with self._connection.begin():
                    yield self._connection
            except BaseException:
                self._drop()
                raise

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        file, self._file = self._file, None
        try:
            if connection is not None:
                connection.invalidate()  # not back into the pool: the lock ends with the connection
                connection.close()
        finally:
            if file is not None:
                file.close()

    def _lock_database(self, connection: Connection) -> bool:
        with connection.begin():
            return bool(connection.execute(sa.select(sa.func.pg_try_advisory_lock(_LEADER_LOCK))).scalar())

    def _lock_file(self) -> bool:
        if not is_sqlite(self._engine):
            return True
        file = Path(f"{self._engine.url.database}.lock").open("w", encoding="utf-8")  # noqa: SIM115 - held until dropped
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._file = file
        return True
