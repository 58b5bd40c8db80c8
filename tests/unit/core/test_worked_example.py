"""Synergy, section 2.1, tables 1 to 3: four jobs of 4 GPUs on two servers of 8 GPUs, 24 CPUs and 500 GB."""

from itertools import permutations

import pytest

from support.planner.planning import job, node, planned, shares
from synergy_core.model.snapshot import Job

SERVERS = [node("s1"), node("s2")]
DEMANDS = {"j1": (23, 400), "j2": (12, 450), "j3": (1, 100), "j4": (12, 50)}


def _jobs(order: tuple[str, ...], **more: object) -> list[Job]:
    return [job(name, 4, wants=DEMANDS[name], arrival_s=float(place), **more) for place, name in enumerate(order)]


@pytest.mark.parametrize("order", list(permutations(DEMANDS)))
@pytest.mark.parametrize("placement", ["auto", "consolidate", "spread"])
def test_tune_gives_each_job_its_demand_in_whatever_order_they_came(order: tuple[str, ...], placement: str) -> None:
    result = planned(SERVERS, _jobs(order, placement=placement))
    together = [frozenset(name for name in DEMANDS if server.name in shares(result, name)) for server in SERVERS]
    assert set(together) == {frozenset({"j1", "j3"}), frozenset({"j2", "j4"})}
    for name, (cpus, gib) in DEMANDS.items():
        assert list(shares(result, name).values()) == [(4, cpus, gib)]


def test_the_sensitive_jobs_are_faster_than_at_their_share_and_nobody_is_slower() -> None:
    result = planned(SERVERS, _jobs(tuple(DEMANDS)))
    gain = {a.job: a.steps_per_s / a.proportional_steps_per_s for a in result.allocations}
    assert gain["j1"] == pytest.approx(23 / 12)
    assert gain["j2"] == pytest.approx(450 / 250)
    assert gain["j3"] == gain["j4"] == pytest.approx(1.0)


def test_proportional_gives_every_job_half_a_server() -> None:
    result = planned(SERVERS, _jobs(tuple(DEMANDS)), mechanism="proportional")
    for name in DEMANDS:
        assert list(shares(result, name).values()) == [(4, 12, 250)]
