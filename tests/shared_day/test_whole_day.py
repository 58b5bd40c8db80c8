"""A day in a shared cluster: 200 nodes of three GPU types, 12 tenants in a tree, 1,000 jobs. `make shared-day`.

The product's processes plan and bind on a real API server. Nodes are kwok's, and training is played
(`support.job.fake_training`). An observer checks guarantees and limits at every event. The same day in the simulator,
where starts take as long, comes out alike.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

import synergy_devcluster
from support.shared_day.day import lived, nodes, product
from support.shared_day.figures import Figures, measured, medians, simulated
from support.shared_day.size import Size
from synergy_kube import KubeClient

pytestmark = [pytest.mark.long, pytest.mark.timeout(6000)]

NEAR = 0.05
TIMES = tuple(tenths / 10 for tenths in range(5, 16))
"""A tenth of a second more for each start leads to another day, whose makespan can be a tenth longer. So the day is
simulated with starts that take half of the measured time to one and a half, and the medians are compared."""


async def test_a_day_keeps_what_tenants_promise_and_is_as_the_simulator_says(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, custom_resources: None, size: Size, tmp_path: Path
) -> None:
    async with product(devcluster, kube, tmp_path, size.round_s):
        day = await lived(kube, size, await nodes(kube, size))
    (tmp_path / "day.json").write_text(json.dumps(day.document()))
    found = measured(size, day.jobs, day.seen)
    start_s, restart_s = day.waits(later=False), day.waits(later=True)
    days = [simulated(size, day.begin, start_s=times * start_s, restart_s=times * restart_s) for times in TIMES]
    at_once = simulated(size, day.begin)
    waits = sorted(day.observer.waits)
    document = {
        "observed": {
            "events": day.observer.events,
            "broken": day.observer.broken,
            "guarantees_served": len(waits),
            "longest_wait_s": waits[-1] if waits else 0.0,
            "start_s": start_s,
            "restart_s": restart_s,
        },
        "cluster": asdict(found),
        "simulated": asdict(medians(days)),
        "simulated_makespans_s": sorted(one.makespan_s for one in days),
        "simulated_starting_at_once": asdict(at_once),
    }
    print(json.dumps(document, indent=1))
    assert day.observer.broken == []
    assert waits, "some job waited for its guarantee"
    assert not far(found, days, [name for name, parent in size.parents.items() if parent is None])


def far(found: Figures, days: Sequence[Figures], roots: Collection[str]) -> dict[str, tuple[float, float]]:
    """Figures of the cluster that are not within 5 % of the median of simulated days: average JCT, makespan, GPU-hours
    of the tenants at the root. Those of the others, a few jobs at a time, are compared with the nearest day.
    Share error and Jain's index are parts of one: they may differ by 0.05."""
    said = medians(days)
    pairs = {"avg_jct_s": (found.avg_jct_s, said.avg_jct_s), "makespan_s": (found.makespan_s, said.makespan_s)}
    for name, hours in found.gpu_hours.items():
        nearest = min((day.gpu_hours[name] for day in days), key=lambda one: abs(one - hours))
        pairs[f"gpu_hours {name}"] = hours, said.gpu_hours[name] if name in roots else nearest
    apart = {name: pair for name, pair in pairs.items() if abs(pair[0] / pair[1] - 1) > NEAR}
    for name in ("share_error", "jain"):
        pair = getattr(found, name), getattr(said, name)
        if abs(pair[0] - pair[1]) > NEAR:
            apart[name] = pair
    return apart
