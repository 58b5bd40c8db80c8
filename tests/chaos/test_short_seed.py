"""A short run of the harness, each kind of fault once. `make chaos` runs longer ones."""

import pytest

from chaos.faults.draw import KINDS
from chaos.run import chaos
from chaos.stage import Stage

pytestmark = pytest.mark.integration


@pytest.mark.timeout(900)
async def test_nothing_is_lost_or_done_twice(whole: Stage) -> None:
    report = await chaos(whole, seed=3, faults=len(KINDS), jobs=15, most_steps=150)
    assert report.good, report.text()
    assert set(report.faults) == set(KINDS)
