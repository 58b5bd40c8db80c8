"""Migration of the database to the newest schema when the program starts."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection, Engine

from synergy_dashboard.store.engine import WRITES, is_sqlite

_MIGRATION_LOCK = 0x53594E45
"""Key of the advisory lock in PostgreSQL, for replicas that start at the same time."""


def migrate(engine: Engine) -> None:
    """Make the tables, or migrate those of an older version, in one transaction that other replicas wait for. Raises an
    error of Alembic if the database is of a newer version."""
    with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
        if not is_sqlite(engine):
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        command.upgrade(config_of(connection), "head")


def config_of(connection: Connection) -> Config:
    """Alembic's configuration for the migrations of this package."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
