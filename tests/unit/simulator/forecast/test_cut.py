"""A simulation that is cut, written and read goes on as if it had not been cut."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.model.snapshot_format import parse_snapshot, snapshot_document
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.outcome import Outcome
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.forecast.forecast import Forecaster
from synergy_simulator.forecast.options import options_of_snapshot
from synergy_simulator.forecast.present import Beginning
from synergy_simulator.forecast.taken import snapshots_at
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool, homogeneous
from synergy_simulator.study.load import load
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import Workload

MOMENTS = (9000.0, 12345.6, 30000.0)


def drawn(seed: int, cluster: Cluster, jobs: int = 30, **more: Any) -> Workload:
    chance = random.Random(seed)
    models = sorted(built_in_profiles().models)
    rows, now = [], 0.0
    for index in range(jobs):
        now += chance.expovariate(1 / 900)
        rows.append(
            {
                "job_id": f"j{index}",
                "arrival_s": now,
                "gpus": chance.choice([1, 1, 2, 4, 8]),
                "model": chance.choice(models),
                "duration_s": chance.lognormvariate(8.5, 1),
                **more,
            }
        )
    return load(rows, "built-in", cluster)


def ends(outcome: Outcome) -> dict[str, float | None]:
    return {run.task.name: run.finish_s for run in outcome.runs}


def cut(workload: Workload, options: Options, moments: tuple[float, ...] = MOMENTS) -> tuple[Outcome, list[Snapshot]]:
    """The whole simulation, and its snapshots as they are read back from their JSON."""
    texts: list[str] = []
    stops = snapshots_at(moments, options, lambda _moment, one: texts.append(json.dumps(snapshot_document(one))))
    return simulate(workload, options, stops=stops), [parse_snapshot(text) for text in texts]


def gone_on(workload: Workload, snapshot: Snapshot, options: Options) -> Outcome:
    beginning = Beginning(snapshot, options)
    later = tuple(task for task in workload.tasks if task.arrival_s > snapshot.now)
    return simulate(Workload(later, beginning.cluster), options, present=beginning.present())


CASES = [
    ("fifo", "tune", {}),
    ("las", "tune", {"preemption_overhead_s": 40.0}),
    ("2d-las", "proportional", {"preemption_overhead_s": 40.0, "start_overhead_s": 20.0}),
    ("srtf", "drf", {}),
    ("2d-gittins", "tune", {}),
    ("ftf", "tune", {"fill": False}),
    ("max-min-fairness", "tune", {}),
    ("finish-time-fairness", "proportional", {}),
]


@pytest.mark.parametrize(("policy", "mechanism", "more"), CASES)
def test_each_job_ends_at_the_same_second(policy: str, mechanism: str, more: dict[str, Any]) -> None:
    workload = drawn(1, homogeneous(2))
    options = Options(plan=PlanConfig(policy=policy, mechanism=mechanism, explain=False), **more)
    whole, snapshots = cut(workload, options)
    assert len(snapshots) == len(MOMENTS)
    truth = ends(whole)
    waiting = 0
    for snapshot in snapshots:
        waiting += sum(job.running is None for job in snapshot.jobs)
        found = ends(gone_on(workload, snapshot, options_as_read(snapshot, options)))
        there = {job.name for job in snapshot.jobs}
        assert {name: found[name] for name in there} == pytest.approx({name: truth[name] for name in there}, abs=1e-3)
    assert waiting, "no job waited at any of the moments: the cut was not worth much"


def options_as_read(snapshot: Snapshot, options: Options) -> Options:
    """The options as the snapshot's config tells them; they must be those of the simulation."""
    found = options_of_snapshot(snapshot, PlanConfig(explain=False))
    assert replace(found, truth=options.truth) == options
    return found


def test_a_forecast_of_few_jobs_is_to_the_second_what_happens_if_nobody_comes() -> None:
    workload = drawn(6, homogeneous(1), jobs=40)
    options = Options(plan=PlanConfig(policy="srtf", mechanism="tune", explain=False))
    _, snapshots = cut(workload, options, (workload.tasks[-1].arrival_s,))
    truth = ends(gone_on(workload, snapshots[0], options))
    found = Forecaster(snapshots[0], options).alone
    assert max(end for _, end in found.values()) - snapshots[0].now > 100_000.0, "longer rounds would not be seen"
    assert {name: end for name, (_, end) in found.items()} == pytest.approx(truth, abs=1e-3)


def test_on_two_gpu_types() -> None:
    pools = tuple(
        SimulatedPool(
            name=kind.lower(), gpu_type=kind, nodes=1, gpus_per_node=8, cpus_per_node=24, memory_gib_per_node=500
        )
        for kind in ("V100", "T4")
    )
    workload = drawn(2, Cluster(pools))
    options = Options(plan=PlanConfig(policy="max-min-fairness", explain=False))
    whole, snapshots = cut(workload, options)
    truth = ends(whole)
    for snapshot in snapshots:
        found = ends(gone_on(workload, snapshot, options))
        there = {job.name for job in snapshot.jobs}
        assert {name: found[name] for name in there} == pytest.approx({name: truth[name] for name in there}, abs=1e-3)


def test_looking_changes_nothing() -> None:
    workload = drawn(3, homogeneous(2))
    options = Options(plan=PlanConfig(policy="las", explain=False))
    whole, _ = cut(workload, options, (1.0, 300.0, 4567.0, 9000.0))
    assert ends(whole) == pytest.approx(ends(simulate(workload, options)), abs=1e-6)


def test_a_snapshot_is_from_before_its_moments_plan_and_has_the_past() -> None:
    workload = drawn(4, homogeneous(2))
    options = Options(plan=PlanConfig(policy="fifo", explain=False))
    arrival = workload.tasks[5].arrival_s
    _, (snapshot,) = cut(workload, options, (arrival,))
    names = {job.name: job for job in snapshot.jobs}
    assert names["j5"].running is None, "the job that arrives at that moment has its place already"
    assert [row.arrival_s for row in snapshot.history] == [task.arrival_s for task in workload.tasks[:6]]
    assert snapshot.config["policy"] == "fifo"


def test_a_simulation_that_ends_before_a_moment_gives_no_snapshot_of_it() -> None:
    workload = drawn(5, homogeneous(2), jobs=2)
    _, snapshots = cut(workload, Options(), (0.0, 1e9))
    assert [snapshot.now for snapshot in snapshots] == [0.0]
