"""The databases that a history can be in."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import needed
from support.dashboard import postgres
from synergy_dashboard.store.store import Store

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Postgres]:
    """A real PostgreSQL."""
    needed.postgresql()
    with postgres.running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'history.db'}"
    server: postgres.Postgres = request.getfixturevalue("postgres_server")
    return server.create(f"history_{next(_NUMBERS)}")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """An empty store that leads."""
    opened = Store(url)
    opened.migrate()
    assert opened.lead()
    yield opened
    opened.close()
