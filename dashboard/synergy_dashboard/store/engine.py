"""The connection to the database: SQLite on a volume, or PostgreSQL by its URL."""

import math
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine, make_url

_BUSY_SECONDS = 30
_NOT_FOR_EVER = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""A PostgreSQL that says nothing any more counts as gone after a minute."""
WRITES = "synergy_writes"
"""Execution option of a connection that is going to write."""


def engine_of(url: str) -> Engine:
    """An engine for `sqlite:////path/to/history.db` or `postgresql://user@host/name`.

    Raises ValueError for a URL that is none, or of another database.
    """
    try:
        parsed = make_url(url)
    except sa.exc.ArgumentError:
        raise ValueError(
            "the database's URL must be like sqlite:////data/history.db or postgresql://host/name"
        ) from None
    if parsed.get_backend_name() == "postgresql":
        usable = parsed.set(drivername="postgresql+psycopg")
        return sa.create_engine(usable, pool_pre_ping=True, pool_size=4, connect_args=_NOT_FOR_EVER)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise ValueError(f"the database must be sqlite with a file, or postgresql, not {parsed.get_backend_name()}")
    engine = sa.create_engine(parsed, connect_args={"timeout": _BUSY_SECONDS})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def is_sqlite(engine: Engine) -> bool:
    """Whether the database is a file."""
    return engine.dialect.name == "sqlite"


def _prepare(connection: Any, _record: Any) -> None:
    """A write-ahead log lets readers go on while the recorder writes.

    With `synchronous=NORMAL` a commit has left the process: a kill loses nothing. A machine that loses power may lose
    the last commits, whole and with the position that belongs to them: the recorder then goes on from the one before.
    """
    connection.isolation_level = None  # else the driver begins transactions as it likes, and none for DDL
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", f"busy_timeout={_BUSY_SECONDS * 1000}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
    connection.create_function("floor", 1, math.floor, deterministic=True)


def _begin(connection: Connection) -> None:
    """One who is going to write says so at once: a reader cannot become a writer while another writes."""
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
