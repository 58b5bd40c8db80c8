"""GPU sharing in the simulation."""

from dataclasses import replace
from pathlib import Path

import pytest

from synergy_core.model.config import ColocationMode
from synergy_core.model.snapshot import Job, Profile
from synergy_core.model.usage import Usage
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.outcome import Outcome
from synergy_simulator.engine.sharing.truth import Truth, read_usages
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.inputs.errors import InputError
from synergy_simulator.inputs.profiles import GIB
from synergy_simulator.report.metrics import metrics_of
from synergy_simulator.reproductions.thesis.colocation import Fixed
from synergy_simulator.workloads.workload import Task, Workload


def _workload(jobs: int, *, gpus: int = 1, compute: float = 0.3, replicas: int = 2) -> Workload:
    pool = SimulatedPool(
        name="v",
        gpu_type="V100",
        nodes=1,
        gpus_per_node=gpus,
        cpus_per_node=8 * gpus,
        memory_gib_per_node=64,
        cost_per_hour=3.0,
        replicas=replicas,
        gpu_memory_gib=16,
    )
    profile = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((1.0,),))
    usage = Usage(compute=compute, bandwidth=0.1, memory_bytes=GIB, model="m")
    tasks = [
        Task(
            name=f"j{index}",
            arrival_s=0.0,
            gpus=1,
            model="m",
            steps=3000.0,
            profiles={"V100": profile},
            share_steps_per_s=1.0,
            alone_s=3000.0,
            usage={"V100": usage},
        )
        for index in range(jobs)
    ]
    return Workload(tuple(tasks), Cluster((pool,)))


def _simulated(workload: Workload, mode: ColocationMode, kept: float, *, record: bool = False) -> Outcome:
    options = Options.of(policy="fifo", colocation=mode, truth=Truth(Fixed(kept), deviation=0.0), record=record)
    return simulate(workload, options)


@pytest.mark.parametrize("mode", ["thesis", "auto"])
def test_two_jobs_share_at_the_speed_that_sharing_really_has(mode: ColocationMode) -> None:
    alone = metrics_of(_simulated(_workload(2), "none", 0.8))
    shared = metrics_of(_simulated(_workload(2), mode, 0.8))
    assert alone.makespan_s == pytest.approx(6000)
    assert shared.makespan_s == pytest.approx(3000 / 0.8)
    assert (alone.avg_queue_s, shared.avg_queue_s) == (1500, 0)


@pytest.mark.parametrize(("mode", "makespan_s"), [("none", 2 * 3000 / 0.625), ("auto", 3000 / 0.625)])
def test_a_limit_on_threads_holds_alone_and_beside_others(mode: ColocationMode, makespan_s: float) -> None:
    workload = _workload(2, compute=0.8)
    limited = Cluster((replace(workload.cluster.pools[0], client_thread_percent=50),))
    assert [node.client_thread_percent for node in limited.nodes()] == [50]
    found = metrics_of(_simulated(replace(workload, cluster=limited), mode, 0.9))
    assert found.makespan_s == pytest.approx(makespan_s)


def test_what_threads_allow_holds_for_each_by_its_own_compute() -> None:
    light, heavy = (
        Job(name=name, gpus=1, usage={"V100": Usage(compute=compute, bandwidth=0.1, model=name)})
        for name, compute in (("light", 0.4), ("heavy", 0.8))
    )
    truth = Truth(Fixed(0.9), deviation=0.0)
    assert truth.fractions([light, heavy], "V100") == (0.9, 0.9)
    assert truth.fractions([light, heavy], "V100", 50) == (0.9, pytest.approx(0.625))


def test_a_shared_gpu_is_counted_and_paid_once() -> None:
    for mode in ("none", "auto"):
        found = metrics_of(_simulated(_workload(4, gpus=2), mode, 0.8))  # type: ignore[arg-type]
        assert found.gpu_utilization == pytest.approx(1.0)
        assert found.cost == pytest.approx(2 * found.makespan_s / 3600 * 3.0)


def test_a_pair_that_does_badly_is_split_at_the_next_round() -> None:
    outcome = _simulated(_workload(2), "auto", 0.3, record=True)
    together = [one for one in outcome.segments if one.job == "j1" and one.start == 0.0]
    assert [one.end for one in together] == [300.0]
    found = metrics_of(outcome)
    assert found.makespan_s == pytest.approx(6000 + 300 * (1 - 0.6))
    assert found.preemptions == 1


def test_a_gpu_that_falls_free_parts_a_pair_at_the_next_round() -> None:
    workload = _workload(3, gpus=2)
    short = replace(workload.tasks[0], steps=500.0)
    outcome = _simulated(replace(workload, tasks=(short, *workload.tasks[1:])), "auto", 0.7, record=True)
    last = max(one.start for one in outcome.segments)
    assert metrics_of(outcome).makespan_s < 3000 / 0.7
    assert len({one.node for one in outcome.segments if one.end > last}) == 1


def test_deviations_are_of_models_not_of_jobs_and_always_the_same() -> None:
    a, b = (replace(task, name=f"other{index}") for index, task in enumerate(_workload(2).tasks))
    jobs = [Job(name=task.name, gpus=1, usage=task.usage) for task in (a, b)]
    truth = Truth(Fixed(0.8))
    assert truth.fractions(jobs, "V100") == truth.fractions(list(reversed(jobs)), "V100")
    assert truth.fractions(jobs, "V100")[0] != 0.8
    assert truth.fractions(jobs[:1], "V100") == (1.0,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,gpu_util,gmem_util\n", "line 1, gmem: column is missing"),
        ("model,gpu_util,gmem_util,gmem\na,130,1,1\n", "line 2, gpu_util: must be at most 100 percent, is 130"),
        ("model,gpu_util,gmem_util,gmem\na,1,1,1\na,1,1,1\n", "line 3, model: a occurs twice"),
        ("model,gpu_util,gmem_util,gmem\na,1,-1,1\n", "line 2, gmem_util: must be at least 0"),
    ],
)
def test_bad_usages_name_line_and_column(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "U.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_usages(path)


def test_usages_are_read(tmp_path: Path) -> None:
    path = tmp_path / "U.csv"
    path.write_text("model,gpu_util,gmem_util,gmem\nres18,55,35,4096\n")
    assert read_usages(path) == {
        "res18": Usage(compute=0.55, bandwidth=0.35, memory_bytes=4 * GIB, model="res18"),
    }


@pytest.mark.parametrize("kept", [0.3, 0.8])
def test_passing_over_rounds_changes_nothing(kept: float) -> None:
    workload = _workload(5, gpus=2)
    late = [replace(task, arrival_s=700.0 * index) for index, task in enumerate(workload.tasks)]
    how = Options.of(policy="fifo", colocation="auto", truth=Truth(Fixed(kept), deviation=0.0))
    jumping, looking = (
        simulate(replace(workload, tasks=tuple(late)), replace(how, reuse_plans=reuse)) for reuse in (True, False)
    )
    assert [run.finish_s for run in jumping.runs] == pytest.approx([run.finish_s for run in looking.runs])
    assert len(jumping.plan_s) < len(looking.plan_s)
