"""A placement-sensitive policy on a cluster: what was measured decides, the place says how it lies, its time counts."""

from typing import Any

import pytest

from support.extender.cluster import NOW, allocation, cluster, foreign, job, key, node_object, share
from synergy_api.parts.allocation import Allocation
from synergy_api.timestamps import format_time
from synergy_core.model import snapshot as core
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_extender.cluster.placements import ENOUGH, spread_speeds
from synergy_extender.cluster.run_state import spread_seconds
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView
from synergy_extender.decisions.allocations import grant, retune
from synergy_extender.decisions.queue import queue_of
from synergy_extender.planning.policy import PolicyInForce, plan_config, policy_in_force
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.snapshot.snapshot import build_snapshot

NODES = [node_object(name, gpus=4) for name in ("n1", "n2", "n3")]
SEEING = {"policy": "max-min-fairness", "placementSensitive": True}


def _config(**spec: Any) -> PlanConfig:
    written = {"metadata": {"name": "default"}, "spec": {**SEEING, **spec}}
    return plan_config(policy_in_force(written, PolicyInForce()), "round")


def _measured(near: float, far: float, *, gpu_type: str = "V100") -> list[dict[str, Any]]:
    return [
        {"gpuType": gpu_type, "nodes": nodes, "relativeSpeed": speed, "reports": ENOUGH}
        for nodes, speed in ((1, near), (2, far))
    ]


def _job(**status: Any) -> JobView:
    return job("j", gpus=4, status={"progress": {"placements": _measured(1.0, 0.4)}, **status})


def _planned(state: ClusterState, **spec: Any) -> core.Allocation:
    snapshot = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot
    (given,) = plan(snapshot, _config(**spec)).allocations
    return given


def test_the_planner_hears_by_gpu_type_what_is_left_of_a_jobs_speed() -> None:
    measured = [*_measured(1.0, 0.4), *_measured(0.8, 1.2, gpu_type="T4")]
    view = job("j", gpus=4, status={"progress": {"placements": measured}})
    (one,) = build_snapshot(cluster(NODES, [view]), mode="round", now=NOW, round_s=20).snapshot.jobs
    assert one.spread_speeds == pytest.approx({"V100": 0.4, "T4": 1.5})
    assert one.spread_speed == pytest.approx(0.4), "of other types the worst is taken"
    assert spread_speeds([], 4, {}) == {}


def test_who_was_measured_to_be_slow_when_spread_is_moved_together_and_its_time_is_counted() -> None:
    held = [foreign(f"f{name}", node=name, gpus=2) for name in ("n1", "n2", "n3")]
    spread = _planned(cluster(NODES, [_job()], held))
    assert (len(spread.workers), spread.spread) == (2, True), "nobody else wants these GPUs"
    capacities = {one.name: one for one in cluster(NODES).capacities}
    placed = grant(1, "Train", spread, Moment(NOW, Rounds(20), 50_000), capacities=capacities, before=None)
    assert placed.to_wire()["spread"] is True

    service = {"run": 1, "runningSince": format_time(NOW - 10), "runningGpuType": "V100"}
    runs = _job(allocation={**placed.to_wire(), "admitted": True}, service=service)
    (wish,) = build_snapshot(cluster(NODES, [runs]), mode="round", now=NOW, round_s=20).snapshot.jobs
    assert (wish.received_s, wish.received_spread_s) == ({"V100": 10.0}, {"V100": 10.0})
    assert wish.running is not None
    assert wish.running.spread
    assert _planned(cluster(NODES, [runs], held)) == wish.running, "while there is nothing better it stays"
    together = _planned(cluster(NODES, [runs]))
    assert (len(together.workers), together.spread) == (1, False)
    assert "spread" not in retune(placed, together, capacities).to_wire()
    assert _planned(cluster(NODES, [runs]), placementSensitive=False).workers == spread.workers


def test_only_time_of_runs_whose_place_was_spread_counts_as_such() -> None:
    service = {
        "run": 2,
        "runningSince": format_time(NOW - 10),
        "runningGpuType": "V100",
        "receivedSeconds": {"T4": 5.0},
        "spreadSeconds": {"T4": 5.0},
    }
    for place, want in (
        (allocation(share("n1", 2), share("n2", 2), run=2, spread=True), {"T4": 5.0, "V100": 10.0}),
        (allocation(share("n1", 2), share("n2", 2), run=2), {"T4": 5.0}),
        (allocation(share("n1", 2), share("n2", 2), run=3, spread=True), {"T4": 5.0}),
    ):
        assert spread_seconds(_job(service=service, allocation=place), NOW) == pytest.approx(want)
    assert Allocation.model_validate(allocation(share("n1"))).spread is None


def test_books_that_say_more_spread_than_received_time_keep_that_job_alone_from_being_planned() -> None:
    broken = {"run": 1, "endedRun": 1, "receivedSeconds": {"V100": 10.0}, "spreadSeconds": {"V100": 10.5}}
    state = cluster(NODES, [_job(service=broken), job("k", gpus=4)])
    made = build_snapshot(state, mode="round", now=NOW, round_s=20)
    assert set(made.refused) == {key("j")}
    assert made.refused[key("j")].message.startswith(
        "status.service.spreadSeconds.V100: 10.5 is above receivedSeconds.V100 10.0, of which it is a part; correct it"
    )
    assert [one.job for one in plan(made.snapshot, _config()).allocations] == ["team/k"]
    told = queue_of(plan(made.snapshot, _config()), state.jobs, [], made.refused)[key("j")]
    assert told.reason == "CannotBePlanned"
    assert "status.service.spreadSeconds.V100" in told.message
    mended = {**broken, "spreadSeconds": {"V100": 10.0}}
    assert len(build_snapshot(cluster(NODES, [_job(service=mended)]), mode="round", now=NOW, round_s=20).snapshot.jobs)
