"""The leader's gauges, and what it counts of the changes that it writes."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from prometheus_client import generate_latest

from support.extender.cluster import NOW, allocation, cluster, foreign, job, node_object, share, team_of
from support.extender.happenings import EVENTS, Event, World, without_rest
from synergy_api.parts.allocation import Allocation
from synergy_extender.cluster.revocation import PODS_NOT_STARTED, Revocation
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView
from synergy_extender.decisions.changes import ChangeKind, StatusChange
from synergy_extender.metrics import Metrics
from synergy_extender.planning.measures import KnownFacts, measure
from synergy_extender.writing.counts import count_change


def sample(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"kube_synergy_{name}", labels)


def measured(state: ClusterState, metrics: Metrics | None = None) -> Metrics:
    metrics = metrics or Metrics()
    measure(metrics, state, NOW)
    return metrics


def running(name: str, *, gpus: int = 1, speed: float = 0.0, at_share: float = 0.0, **more: Any) -> JobView:
    held = allocation(share("n1", gpus), stepsPerSecond=speed, proportionalStepsPerSecond=at_share, **more)
    return job(name, gpus=gpus, status={"phase": "Running", "allocation": held})


def waiting(name: str, *, gpus: int = 1, reason: str = "NoFreeGPU", waited_s: float = 100.0) -> JobView:
    queue = {"position": 1, "reason": reason, "message": ""}
    view = job(name, gpus=gpus, status={"phase": "Queued", "queue": queue})
    return replace(view, created=NOW - waited_s)


def test_waiting_jobs_are_counted_by_reason_and_a_reason_that_is_gone_is_gone() -> None:
    state = cluster([node_object("n1")], [waiting("a"), waiting("b"), waiting("c", reason="QuotaFull")])
    metrics = measured(state)
    assert sample(metrics, "queue_length") == 3
    assert sample(metrics, "waiting_jobs", reason="NoFreeGPU") == 2
    assert sample(metrics, "waiting_jobs", reason="QuotaFull") == 1
    measured(cluster([node_object("n1")], [waiting("a")]), metrics)
    assert sample(metrics, "waiting_jobs", reason="QuotaFull") is None


def test_a_scrape_during_a_measurement_misses_no_series() -> None:
    """The measurement has a thread of its own, and takes a while with thousands of jobs."""
    jobs = [running("r"), *(waiting(f"w{index}", reason=f"Reason{index}") for index in range(20))]
    state = cluster([node_object(f"n{index}", gpu_type=f"T{index}") for index in range(9)], jobs)
    metrics = measured(state)
    whole = generate_latest(metrics.registry).count(b"\n")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as thread:
            measurements = [thread.submit(measured, state, metrics) for _ in range(10)]
            while not all(one.done() for one in measurements):
                assert generate_latest(metrics.registry).count(b"\n") == whole
    finally:
        sys.setswitchinterval(interval)


def test_each_tenant_has_what_it_holds_and_wants_and_its_longest_wait() -> None:
    jobs = [running("r", gpus=4), waiting("a", gpus=2, waited_s=50.0), waiting("b", waited_s=900.0)]
    metrics = measured(cluster([node_object("n1")], jobs, tenancy=team_of("vision")))
    assert sample(metrics, "tenant_jobs", tenant="vision") == 3
    assert sample(metrics, "tenant_gpus", tenant="vision", use="held") == 4
    assert sample(metrics, "tenant_gpus", tenant="vision", use="wanted") == 3
    assert sample(metrics, "oldest_waiting_seconds", tenant="vision") == pytest.approx(900.0)


def test_a_finished_job_belongs_to_no_tenants_count() -> None:
    done = job("done", status={"phase": "Succeeded"})
    metrics = measured(cluster([node_object("n1")], [done], tenancy=team_of("vision")))
    assert sample(metrics, "tenant_jobs", tenant="vision") is None


def test_the_speed_gain_is_weighted_by_gpus_and_leaves_out_unknown_speeds() -> None:
    jobs = [running("a", gpus=3, speed=2.0, at_share=1.0), running("b", speed=3.0, at_share=3.0), running("c", gpus=4)]
    assert sample(measured(cluster([node_object("n1")], jobs)), "speed_gain_ratio") == pytest.approx((3 * 2 + 1) / 4)
    assert sample(measured(cluster([node_object("n1")], [])), "speed_gain_ratio") == 1.0


def test_gpus_are_counted_by_type_and_use() -> None:
    pod = foreign("other", node="n1", gpus=2)
    pairs = [running(name, sharedGpu={"asked": [f"team/{other}"]}) for name, other in (("a", "b"), ("b", "a"))]
    metrics = measured(cluster([node_object("n1"), node_object("n2", gpu_type="T4")], pairs, [pod]))
    assert sample(metrics, "gpus", gpu_type="V100", use="all") == 8
    assert sample(metrics, "gpus", gpu_type="V100", use="held") == 2
    assert sample(metrics, "gpus", gpu_type="V100", use="shared") == 1
    assert sample(metrics, "gpus", gpu_type="T4", use="shared") == 0


def test_late_jobs_are_counted() -> None:
    late = job("late", status={"phase": "Queued", "late": {"reason": "NotEnoughTime", "message": ""}})
    assert sample(measured(cluster([node_object("n1")], [late, waiting("a")])), "late_jobs") == 1


def change(view: JobView, **after: Any) -> StatusChange:
    new = Allocation.model_validate(allocation(share("n1"), **after))
    return StatusChange(view, ChangeKind.LEAVE, new, None)


@pytest.mark.parametrize(
    ("reason", "rule"),
    [
        (str(Revocation.YIELDS), "yields"),
        (str(Revocation.MOVES), "moves"),
        (f"shared a GPU at 0.4 of its speed; {Revocation.YIELDS}", "sharing_was_slow"),
        (f"{PODS_NOT_STARTED}no pod of run 3 was bound", "pods_not_started"),
        ("a text of a version that is not this one", ""),
    ],
)
def test_a_revocation_is_counted_by_its_rule_once(reason: str, rule: str) -> None:
    metrics, granted = Metrics(), running("a")
    count_change(metrics, change(granted, state="Revoked", reason=reason), NOW)
    assert sample(metrics, "revocations_total", rule=rule) == 1
    already = job("a", status={"phase": "Running", "allocation": allocation(share("n1"), state="Revoked")})
    count_change(metrics, change(already, state="Revoked", reason=reason), NOW)
    assert sample(metrics, "revocations_total", rule=rule) == 1


def test_rules_that_never_applied_are_there_as_zero() -> None:
    assert sample(Metrics(), "revocations_total", rule="node_unusable") == 0


def test_the_first_training_run_tells_how_long_the_job_waited() -> None:
    metrics, new = Metrics(), waiting("a", waited_s=70.0)
    count_change(metrics, change(new, admitted=False), NOW)
    assert sample(metrics, "first_start_wait_seconds_count") == 0
    count_change(metrics, change(new), NOW)
    assert sample(metrics, "first_start_wait_seconds_count") == 1
    assert sample(metrics, "first_start_wait_seconds_sum") == pytest.approx(70.0)
    count_change(metrics, change(new, purpose="Profile"), NOW)
    again = job("a", status={"phase": "Queued", "startTime": "2026-01-01T00:00:00Z"})
    count_change(metrics, change(again), NOW)
    assert sample(metrics, "first_start_wait_seconds_count") == 1


@given(EVENTS)
def test_gauges_with_what_is_known_are_those_without(events: list[Event]) -> None:
    world, known, kept = World(), KnownFacts(), Metrics()
    for event in events:
        world.happens(event)
        measure(kept, world.state(), world.now, known)
    anew = Metrics()
    measure(anew, without_rest(world.state()), world.now)
    assert gauges(kept) == gauges(anew) or not events


def gauges(metrics: Metrics) -> set[str]:
    """All series with their values, but for the moments at which they were made."""
    lines = generate_latest(metrics.registry).decode().splitlines()
    return {line for line in lines if not line.startswith("#") and "_created" not in line and "python_" not in line}
