"""A run that has only just begun is left alone, and one whose preemption costs much for longer."""

from typing import Any

import pytest

from support.planner.planning import holding, job, node
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import FieldError, Job, Snapshot
from synergy_core.plan import plan

NODES = (node("n", 4),)


def _runs(name: str, gpus: int = 4, *, since: float = 0.0, **more: Any) -> Job:
    held = holding(name, ("n", gpus, 3 * gpus, 60 * gpus))
    return job(name, gpus, running=held, run_started_s=since, started_s=since, **more)


def _planned(*jobs: Job, now: float = 100.0, **config: Any) -> Plan:
    return plan(Snapshot(nodes=NODES, jobs=jobs, now=now), PlanConfig(**{"policy": "las", **config}))


@pytest.mark.parametrize("mechanism", ["proportional", "tune", "greedy", "opt"])
def test_nobody_displaces_a_run_that_is_younger_than_the_least(mechanism: str) -> None:
    old, new = _runs("old", since=10.0, attained_gpu_s=360.0), job("new", 4)
    assert mechanism in MECHANISMS
    assert _planned(old, new, minimum_run_s=91.0, mechanism=mechanism).preempted == ()
    assert _planned(old, new, minimum_run_s=90.0, mechanism=mechanism).preempted == ("old",)


def test_a_run_lasts_a_multiple_of_what_its_preemption_costs() -> None:
    cheap = _runs("cheap", 2, attained_gpu_s=200.0, preemption_cost_s=5.0)
    dear = _runs("dear", 2, attained_gpu_s=200.0, preemption_cost_s=20.0)
    new = job("new", 2)
    assert _planned(cheap, dear, new, preemption_payback=10.0).preempted == ("cheap",)
    crowd = (cheap, dear, new, job("other", 2))
    assert _planned(*crowd, now=199.0, preemption_payback=10.0).preempted == ("cheap",)
    assert _planned(*crowd, now=200.0, preemption_payback=10.0).preempted == ("cheap", "dear")


def test_where_the_run_s_age_is_not_known_it_is_not_protected() -> None:
    old = job("old", 4, running=holding("old", ("n", 4, 12, 240)), attained_gpu_s=9.0)
    assert _planned(old, job("new", 4), minimum_run_s=1e6).preempted == ("old",)


def test_a_young_run_does_not_move_to_another_gpu_type_either() -> None:
    nodes = (node("n", 4), node("t", 4, gpu_type="T4"))
    young = _runs("young", since=95.0)
    moves = {"policy": "max-throughput", "mechanism": "proportional"}
    rival = job("rival", 4)
    for minimum, still in ((0.0, None), (10.0, "n")):
        snapshot = Snapshot(nodes=nodes, jobs=(young, rival), now=100.0)
        made = plan(snapshot, PlanConfig(minimum_run_s=minimum, **moves))
        where = {a.job: a.workers[0].node for a in made.allocations}
        assert still is None or where["young"] == still
        assert len(where) == 2


@pytest.mark.parametrize("field", ["minimum_run_s", "preemption_payback"])
@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan")])
def test_a_negative_or_endless_one_is_refused(field: str, value: float) -> None:
    with pytest.raises(FieldError, match=f"{field}: must be at least 0 and finite"):
        _planned(**{field: value})
