"""A small day of three tenants on the shared devcluster: an observer checks guarantees and limits at every event."""

from pathlib import Path

import pytest

import synergy_devcluster
from support.extender.world import without_the_product
from support.shared_day.day import lived, nodes, product
from support.shared_day.figures import measured
from support.shared_day.size import SMALL
from synergy_kube import KubeClient

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


async def test_guarantees_and_limits_hold_at_every_event(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, custom_resources: None, tmp_path: Path
) -> None:
    async with without_the_product(kube), product(devcluster, kube, tmp_path, SMALL.round_s):
        day = await lived(kube, SMALL, await nodes(kube, SMALL))
    print(day.observer.events, sorted(day.observer.waits), dict(day.observer.most))
    print(measured(SMALL, day.jobs, day.seen))
    assert day.observer.broken == []
    assert day.observer.waits, "some job waited for its guarantee"
    assert all(one.finished for one in day.seen.values())
