"""What a preemption takes, what keeps it rare, and that it comes to an end (Tiresias, sections 2.2 and 5.2.4)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.simulator.simulation import flat, server, traced
from synergy_core.model.config import PlanConfig, PriorityQueues
from synergy_core.model.snapshot import Snapshot
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.outcome import Outcome
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.workloads.workload import Workload, build_workload

MIB = 1 << 20


def _workload(*jobs: tuple[str, float, int, int], gpus: int = 2, nodes: int = 1, **task: Any) -> Workload:
    """(name, arrival, steps of a second, GPUs) each."""
    made = [traced(name, arrival, steps, gpus=count) for name, arrival, steps, count in jobs]
    workload = build_workload(made, flat(), server(gpus, nodes=nodes))
    return Workload(tuple(replace(one, **task) for one in workload.tasks), workload.cluster)


def _finish(outcome: Outcome) -> dict[str, float]:
    return {run.task.name: run.finish_s or 0.0 for run in outcome.runs}


def _las(workload: Workload, **options: Any) -> Outcome:
    queues = PriorityQueues(thresholds_gpu_s=options.pop("thresholds", (100.0,)))
    return simulate(
        workload, Options.of(policy="2d-las", mechanism="proportional", round_s=10.0, queues=queues, **options)
    )


LONG_AND_SHORT = (("long", 0.0, 300, 2), ("short", 95.0, 40, 2))


def test_a_preempted_job_pays_for_its_checkpoint_there_and_back() -> None:
    free = _finish(_las(_workload(*LONG_AND_SHORT, gpus=2)))
    assert free == {"long": 340.0, "short": 140.0}
    workload = _workload(*LONG_AND_SHORT, checkpoint_bytes=100 * MIB)
    paid = _finish(_las(workload, storage_bytes_per_s=10.0 * MIB, preemption_overhead_s=3.0))
    assert paid == {"long": 340.0 + 23.0, "short": 140.0}


def test_a_minimum_run_keeps_a_young_run_in_place_and_ends() -> None:
    late = _finish(_las(_workload(*LONG_AND_SHORT), minimum_run_s=200.0))
    assert late == {"long": 340.0, "short": 240.0}, "at 200 s it is old enough"


def test_payback_lets_dear_jobs_run_longer() -> None:
    workload = _workload(*LONG_AND_SHORT, checkpoint_bytes=100 * MIB)
    dear = _las(workload, storage_bytes_per_s=10.0 * MIB, preemption_payback=10.0)
    assert _finish(dear)["short"] == 240.0, "ten times 20 s"
    (preempted,) = [run for run in dear.runs if run.preemptions]
    assert preempted.task.name == "long"
    never = _las(workload, storage_bytes_per_s=10.0 * MIB, preemption_payback=100.0)
    assert sum(run.preemptions for run in never.runs) == 0


@pytest.mark.parametrize("limit", [0.3, None])
def test_a_job_that_spreading_slows_down_is_slow_only_where_it_is_spread(limit: float | None) -> None:
    jobs = [traced("one", 0, 100), traced("two", 0, 100), traced("wide", 0, 50, gpus=2, skew=0.7)]
    workload = build_workload(jobs, flat(), server(2, nodes=2))
    slow = Workload(tuple(replace(one, spread_speed=0.5) for one in workload.tasks), workload.cluster)
    options = Options.of(policy="fifo", mechanism="proportional", round_s=10.0, pack_limit=limit)
    assert _finish(simulate(slow, options))["wide"] == 50.0


def _sets_of_running(workload: Workload, **options: Any) -> list[frozenset[str]]:
    """Who runs at the beginning of each planned round."""
    seen: list[frozenset[str]] = []

    def watch(snapshot: Snapshot, config: PlanConfig) -> None:
        if config.mode == "round":
            seen.append(frozenset(job.name for job in snapshot.jobs if job.running is not None))

    queues = PriorityQueues(thresholds_gpu_s=(60.0, 300.0), service_gpu_s=(50.0, 100.0, 400.0, 10_000.0))
    until = Options.of(
        mechanism="proportional", queues=queues, round_s=10.0, measure=(0, 1), until_measured_done=True,
        reuse_plans=False, **options,
    )  # fmt: skip
    simulate(workload, until, watch=watch)
    return seen


@settings(max_examples=25)
@given(
    gpus=st.lists(st.integers(1, 4), min_size=2, max_size=7),
    policy=st.sampled_from(("2d-las", "2d-gittins", "sf", "srtf", "srsf", "fifo", "yarn-cs", "best-effort")),
    minimum=st.sampled_from((0.0, 35.0)),
)
def test_with_no_arrivals_the_set_of_running_jobs_settles(gpus: list[int], policy: str, minimum: float) -> None:
    """A clock of one GPU on a node of its own ends the simulation; all other jobs never end."""
    clock = traced("clock", 0, 3000)
    endless = [traced(f"j{n}", 0, 10**7 + n, gpus=count) for n, count in enumerate(gpus)]
    workload = build_workload([clock, *endless], flat(), server(4, nodes=2))
    seen = _sets_of_running(workload, policy=policy, minimum_run_s=minimum)
    assert len(seen) > 250
    assert len(set(seen[150:])) == 1, "nobody is preempted any more"
