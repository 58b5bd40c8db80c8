"""What several end-to-end tests begin with."""

from collections.abc import Iterator

import pytest

import synergy_devcluster
from synergy_cli.product import install


@pytest.fixture(scope="module")
def dashboard(devcluster: synergy_devcluster.Cluster, product: None) -> Iterator[None]:
    """The chart with its dashboard, which other end-to-end tests do without."""
    install(devcluster, {"dashboard.enabled": "true"}, report=print)
    yield
    install(devcluster, report=print)
