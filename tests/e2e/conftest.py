"""What several end-to-end tests begin with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import synergy_devcluster
from synergy_cli.product import install

_FOUND = pytest.StashKey[tuple[pytest.Item, ...]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remember the tests that were found, before marks and names leave some out."""
    config.stash[_FOUND] = tuple(items)


@pytest.fixture
def others_ran(request: pytest.FixtureRequest) -> bool:
    """Whether all tests of this folder run in this session, but for the long ones, which have a run of their own."""
    folder = Path(__file__).parent
    found = [item for item in request.config.stash[_FOUND] if item.path.parent == folder]
    whole = {item.path for item in found} == set(folder.glob("test_*.py"))
    return whole and {item for item in found if not item.get_closest_marker("long")} <= set(request.session.items)


@pytest.fixture(scope="module")
def dashboard(devcluster: synergy_devcluster.Cluster, product: None) -> Iterator[None]:
    """The chart with its dashboard, which other end-to-end tests do without."""
    install(devcluster, {"dashboard.enabled": "true"}, report=print)
    yield
    install(devcluster, report=print)
