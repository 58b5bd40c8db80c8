"""Jobs that the planner has matrices of for some GPU types only."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from support.simulator.simulation import traced
from synergy_core.model.snapshot import Profile
from synergy_core.model.usage import Usage
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.outcome import Outcome
from synergy_simulator.engine.partial import PartialProfiles
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.inputs.profiles import ProfileTable, flat_profile
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.workloads.workload import build_workload

SPEEDS = {
    **{f"alike-{number}": {"K80": 1.0, "P100": 2.0, "V100": 4.0} for number in range(6)},
    **{f"odd-{number}": {"K80": 1.0, "P100": 1.0, "V100": 1.0} for number in range(4)},
}
TYPES = ("K80", "P100", "V100")


def _cluster() -> Cluster:
    pools = (
        SimulatedPool(name=t, gpu_type=t, nodes=1, gpus_per_node=1, cpus_per_node=4, memory_gib_per_node=16.0)
        for t in TYPES
    )
    return Cluster(tuple(pools))


def _find(model: str, gpu_type: str, _gpus: int) -> Profile | None:
    return _MADE[model, gpu_type]


_MADE = {(model, gpu_type): flat_profile(speed) for model, own in SPEEDS.items() for gpu_type, speed in own.items()}
TABLE = ProfileTable(SPEEDS.keys(), _find, {})


def _run(jobs: Sequence[TraceJob], most: int | None) -> Outcome:
    workload = build_workload(jobs, TABLE, _cluster())
    return simulate(workload, Options.of(policy="max-min-fairness", mechanism="proportional", measured_types=most))


def test_what_is_measured_on_a_limited_gpu_has_the_limit_in_it() -> None:
    usage = Usage(compute=0.8, bandwidth=0.1, model="odd-0")
    pools = tuple(replace(pool, client_thread_percent=50) for pool in _cluster().pools)
    workload = build_workload([traced("j", 0.0, 4000, model="odd-0")], TABLE, Cluster(pools))
    tasks = tuple(replace(task, usage=dict.fromkeys(TYPES, usage)) for task in workload.tasks)
    how = Options.of(policy="max-min-fairness", mechanism="proportional", measured_types=1)
    (run,) = simulate(replace(workload, tasks=tasks), how).runs
    assert run.held_s == pytest.approx(4000 / 0.625), "one step a second with all threads, on whatever type"
    assert all(speed == pytest.approx(0.625) for speed in run.job.measured.values())


def test_who_is_held_up_by_its_cpu_loses_nothing_to_the_limit() -> None:
    """At its share of CPU the job has half of its best speed, for which half of the threads are enough."""
    matrix = replace(flat_profile(2.0), cpu_millis=(1, 10**9), steps_per_s=((1.0,), (2.0,)))
    usage = dict.fromkeys(TYPES, Usage(compute=1.0, bandwidth=0.1, model="odd-0"))
    pools = tuple(replace(pool, client_thread_percent=50) for pool in _cluster().pools)
    table = ProfileTable(SPEEDS.keys(), lambda *_: matrix, {})
    workload = build_workload([traced("j", 0.0, 4000, model="odd-0")], table, Cluster(pools))
    tasks = tuple(replace(task, usage=usage) for task in workload.tasks)
    seconds = []
    for most in (None, 1):
        how = Options.of(policy="max-min-fairness", mechanism="proportional", measured_types=most)
        (run,) = simulate(replace(workload, tasks=tasks), how).runs
        seconds.append(run.held_s)
    assert seconds[0] == pytest.approx(seconds[1])


def test_a_model_is_shown_on_so_many_types_and_different_models_on_different_ones() -> None:
    jobs = [traced(f"{model}-{copy}", 0.0, 10, model=model) for model in SPEEDS for copy in (1, 2)]
    tasks = build_workload(jobs, TABLE, _cluster()).tasks
    partial = PartialProfiles(2)
    shown = {task.name: partial.of(task) for task in tasks}
    assert {len(one) for one in shown.values()} == {2}
    assert len({tuple(sorted(one)) for one in shown.values()}) == 3, "every two of three types"
    assert all(shown[f"{model}-1"] is shown[f"{model}-2"] for model in SPEEDS), "which the planner makes use of"
    for most in (None, 3, 9):
        assert all(PartialProfiles(most).of(task) is task.profiles for task in tasks)


def test_where_all_gain_alike_estimates_are_exact_and_cost_nothing() -> None:
    jobs = [traced(f"j{number}", 0.0, 2000 + 500 * number, model=f"alike-{number}") for number in range(6)]
    partly, whole = _run(jobs, 2), _run(jobs, None)
    assert partly.estimate_errors
    assert max(partly.estimate_errors) < 1e-9
    assert [run.finish_s for run in partly.runs] == pytest.approx([run.finish_s for run in whole.runs])
    assert list(whole.estimate_errors) == []


def test_a_job_moves_by_what_it_is_and_not_by_what_was_estimated_and_the_error_is_told() -> None:
    jobs = [traced(f"j{number}", 0.0, 4000, model=f"alike-{number}") for number in range(6)]
    jobs += [traced(f"odd-{number}", 0.0, 4000, model=f"odd-{number}") for number in range(4)]
    outcome = _run(jobs, 2)
    odd = [run for run in outcome.runs if run.task.model.startswith("odd")]
    for run in odd:
        assert run.held_s == pytest.approx(4000.0), "one step a second, on whatever type"
        assert set(run.job.measured.items()) <= {
            (gpu_type, 1.0) for gpu_type in TYPES if gpu_type not in run.job.profiles
        }
    assert any(run.job.measured for run in odd)
    assert 0.2 < max(outcome.estimate_errors) < 4.0
