"""How often a job is looked at that somebody waits for."""

import asyncio
from typing import Any

import pytest

from kube_synergy.live import following
from kube_synergy.live.following import poll_s, states
from support.extender.cluster import job_object
from synergy_view.seen import SeenJob, read


def test_the_longer_a_job_stays_in_a_phase_the_less_often_it_is_looked_at() -> None:
    assert [poll_s(seconds) for seconds in (0.0, 20.0, 60.0, 300.0, 9000.0)] == [1.0, 1.0, 3.0, 15.0, 15.0]


class Cluster:
    """A job that has these phases, one at each look, and a clock that stands still but for sleeps."""

    def __init__(self, *phases: str) -> None:
        self.phases = list(phases)
        self.now = 0.0
        self.slept: list[float] = []

    async def job(self, _: str, uid: str) -> SeenJob:
        return read(job_object(status={"phase": self.phases.pop(0)}, uid=uid))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += 60.0


async def test_a_new_phase_makes_looks_frequent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = Cluster("Queued", "Queued", "Queued", "Running", "Running", "Succeeded")
    monkeypatch.setattr(asyncio, "sleep", cluster.sleep)
    monkeypatch.setattr(following.time, "monotonic", lambda: cluster.now)
    seen = [job.phase async for job in states(cluster, "j", "uid-j")]
    assert seen == ["Queued", "Queued", "Queued", "Running", "Running", "Succeeded"]
    assert cluster.slept == [1.0, 3.0, 6.0, 1.0, 3.0]
