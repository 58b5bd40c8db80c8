"""The connection to the database: SQLite on a volume, or PostgreSQL by its URL."""

import math
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine, make_url

_BUSY_SECONDS = 30
_NOT_FOR_EVER = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""A PostgreSQL server that does not answer counts as lost after a minute."""
WRITES = "synergy_writes"
"""Execution option of a connection for writes."""


def engine_of(url: str) -> Engine:
    """An engine for `sqlite:////path/to/history.db` or `postgresql://user@host/name`. Raises ValueError for an invalid
    URL or another database."""
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
    """True if the database is a file."""
    return engine.dialect.name == "sqlite"


def _prepare(connection: Any, _record: Any) -> None:
    """With a write-ahead log, readers continue while the recorder writes. With `synchronous=NORMAL` a killed process
    loses no commit. A power failure may lose the last commits as a whole, together with the recorder's position. The
    recorder then continues from the previous position."""
    connection.isolation_level = None  # else the driver begins transactions as it likes, and none for DDL
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", f"busy_timeout={_BUSY_SECONDS * 1000}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
    connection.create_function("floor", 1, math.floor, deterministic=True)


def _begin(connection: Connection) -> None:
    """Begin the transaction. One for writes begins as such: a read transaction cannot become one while another
    connection writes."""
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
