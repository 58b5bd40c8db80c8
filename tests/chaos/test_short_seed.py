"""A short run of the harness, each kind of fault once. `make chaos` runs longer ones."""

from pathlib import Path

import pytest

import synergy_devcluster
from chaos.faults import KINDS
from chaos.run import chaos

pytestmark = pytest.mark.integration


@pytest.mark.timeout(420)
async def test_nothing_is_lost_or_done_twice(
    devcluster: synergy_devcluster.Cluster, repository: Path, tmp_path: Path
) -> None:
    report = await chaos(devcluster, repository, tmp_path, seed=1, faults=len(KINDS), jobs=15)
    assert report.good, report.text()
    assert set(report.faults) == set(KINDS)
