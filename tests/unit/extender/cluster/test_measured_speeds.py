"""Throughputs on GPU types without a matrix: measured while the job runs there, and what plans and people hear."""

from typing import Any

import pytest

from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import NOW, allocation, cluster, job, job_object, node_object, share
from support.extender.leads import Leads
from synergy_api.parts.progress import ENOUGH_REPORTS, MeasuredSpeed
from synergy_core.model import snapshot as core
from synergy_extender.cluster.measured_speeds import MOST, errors_of_estimates, measured_after
from synergy_extender.cluster.views import JobView, read_job
from synergy_extender.decisions.allocations import grant, retune
from synergy_extender.leases.reports import Report, Reported, progress_after
from synergy_extender.metrics import Metrics
from synergy_extender.planning.policy import PolicyInForce, plan_config, policy_in_force
from synergy_extender.planning.publisher import Publisher
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.snapshot.snapshot import build_snapshot

MATRIX = {"gpuType": "T4", "cpuMillis": [1000], "memoryBytes": [1], "stepsPerSecond": [[4.0]]}
ESTIMATED = {"stepsPerSecond": 8.0, "estimated": True}


def _after(view: JobView, speed: float, *, times: int = 1, run: int = 1, **held: Any) -> JobView:
    """The job once its run has reported the speed so many times."""
    for _ in range(times):
        place = allocation(share("n1"), run=1, **held)
        now = _with(view, allocation=place)
        progress = progress_after(now, Reported("uid-j", run, Report(step=1, steps_per_second=speed)), NOW)
        view = _with(now, progress=progress.to_wire())
    return view


def _with(view: JobView, **status: Any) -> JobView:
    spec = {"profile": {"mode": "Provided", "matrices": [MATRIX]}, "gpuTypes": ["T4", "V100"]}
    return read_job({**job_object("j", spec=spec), "status": {**view.status.to_wire(), **status}})


def _core(view: JobView) -> core.Job:
    (one,) = build_snapshot(cluster([node_object("n1")], [view]), mode="round", now=NOW, round_s=20).snapshot.jobs
    return one


def _measured(view: JobView) -> list[MeasuredSpeed]:
    assert view.status.progress is not None
    return view.status.progress.measured


def test_what_the_job_reports_there_goes_to_the_plan_once_there_are_reports_enough() -> None:
    view = _after(_with(job("j")), 6.0, times=ENOUGH_REPORTS - 1, **ESTIMATED)
    assert (_core(view).measured, errors_of_estimates(view)) == ({}, [])
    view = _after(view, 7.0, **ESTIMATED)
    assert _core(view).measured == {"V100": 6.2}, "the mean of the reports"
    assert errors_of_estimates(view) == [pytest.approx(8.0 / 6.2 - 1.0)]
    running = _core(view).running
    assert running is not None
    assert running.estimated, "the run was planned by the estimate"
    again = _after(view, 6.2, stepsPerSecond=6.2)
    assert errors_of_estimates(again) == errors_of_estimates(view), "what was estimated before is kept"
    assert _core(again).running is not None
    assert not _core(again).running.estimated  # type: ignore[union-attr]


def test_what_was_measured_of_another_spec_counts_no_more() -> None:
    """The fingerprint in the status is that of what runs; it changes between runs, after the spec has."""
    old = _after(_with(job("j"), profile=_marked("1" * 32)), 6.0, times=ENOUGH_REPORTS, **ESTIMATED)
    assert (_core(old).measured, len(errors_of_estimates(old))) == ({"V100": 6.0}, 1)
    new = _with(old, profile=_marked("2" * 32))
    assert (_core(new).measured, errors_of_estimates(new)) == ({}, [])
    after = _measured(_after(new, 9.0))
    assert [(one.steps_per_second, one.reports, one.fingerprint) for one in after] == [(9.0, 1, "2" * 32)]
    assert after[0].estimated_steps_per_second is None


def _marked(fingerprint: str) -> dict[str, Any]:
    return {"state": "Complete", "fingerprint": fingerprint, "matrices": [MATRIX]}


def test_an_estimate_is_no_measure_of_where_the_workers_lie() -> None:
    view = _after(_with(job("j")), 6.0, **ESTIMATED)
    assert view.status.progress is not None
    assert view.status.progress.placements == []
    assert _after(view, 6.0, stepsPerSecond=6.0).status.progress.placements != []  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "held",
    [
        {"gpuType": "T4"},
        {"purpose": "Profile"},
        {"sharedGpu": {"asked": ["team/other"]}},
        {"sharedGpu": {"seen": ["team/other"]}},
        {"workers": []},
        {"run": 2},
    ],
)
def test_nothing_is_measured_where_there_is_a_matrix_or_the_run_has_no_gpu_to_itself(held: dict[str, Any]) -> None:
    place = {**allocation(share("n1")), **held}
    view = _with(job("j"), allocation=place)
    assert measured_after(view, 1, 6.0) == []


@pytest.mark.parametrize("speed", [0.0, 1e-7, 1e12])
def test_a_speed_that_makes_no_sense_is_not_taken(speed: float) -> None:
    view = _after(_with(job("j")), 6.0)
    assert measured_after(view, 1, speed) == _measured(view) != []


def test_the_newest_types_are_kept() -> None:
    known = [MeasuredSpeed(gpu_type=f"G{number}", steps_per_second=1.0).to_wire() for number in range(MOST)]
    view = _with(job("j"), allocation=allocation(share("n1")), progress={"measured": known})
    after = measured_after(view, 1, 2.0)
    assert [one.gpu_type for one in after] == [*(f"G{number}" for number in range(1, MOST)), "V100"]


def test_a_place_says_that_its_speeds_are_estimated_as_long_as_they_are() -> None:
    worker = core.NodeShare(node="n1", gpus=1, cpu_millis=1000, memory_bytes=1)
    guess = core.Allocation(job="team/j", gpu_type="V100", workers=(worker,), steps_per_s=8.0, estimated=True)
    known = core.Allocation(job="team/j", gpu_type="V100", workers=(worker,), steps_per_s=6.0)
    capacities = {one.name: one for one in cluster([node_object("n1")]).capacities}
    placed = grant(1, "Train", guess, Moment(NOW, Rounds(20), 50_000), capacities=capacities, before=None)
    assert placed.to_wire()["estimated"] is True
    assert "estimated" not in retune(placed, known, capacities).to_wire()


@pytest.mark.parametrize(
    ("spec", "mode"), [({}, "named"), ({"estimate": "all"}, "all"), ({"estimate": "none"}, "none")]
)
def test_the_policy_says_where_estimates_count(spec: dict[str, Any], mode: str) -> None:
    assert plan_config(policy_in_force({"spec": spec}, PolicyInForce()), "round").estimate == mode
    assert "estimate" in policy_in_force({"spec": {"estimate": "some"}}, PolicyInForce()).problem


async def test_metrics_count_estimates_and_say_how_far_they_were_off() -> None:
    view = _after(_with(job("j")), 5.0, times=ENOUGH_REPORTS, stepsPerSecond=6.0, estimated=True)
    view = _with(view, estimates=[{"gpuType": "A100", "stepsPerSecond": 9.0}])
    server, metrics = WatchServer(), Metrics()
    async with following(server) as (client, cache):
        publisher = Publisher(client, cache, metrics, lead=Leads(leading=False))
        await publisher.publish(cluster([node_object("n1")], [view]), PolicyInForce(), NOW)
    value = metrics.registry.get_sample_value
    assert value("kube_synergy_estimated_speeds") == 1.0
    assert value("kube_synergy_estimate_error") == pytest.approx(0.2)
