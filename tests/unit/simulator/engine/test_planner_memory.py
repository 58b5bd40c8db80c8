"""Each plan of a simulation is the one that a planner without memory makes, although simulated jobs are objects that
change as they run."""

from dataclasses import replace
from typing import Any

import pytest

from support.simulator.simulation import traced
from synergy_core.cache import Memory
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.model.usage import Usage
from synergy_core.plan import plan
from synergy_core.policies import POLICIES
from synergy_core.policies.rounds.time_shares import BY_COST
from synergy_simulator.engine import planner
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.sharing.truth import Truth
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool, homogeneous
from synergy_simulator.inputs.profiles import GIB, ProfileTable, flat_profile
from synergy_simulator.reproductions.gavel.common import cluster
from synergy_simulator.reproductions.thesis.colocation import Fixed
from synergy_simulator.workloads.gavel_mix import built_in_speeds, drawn
from synergy_simulator.workloads.generator import PHILLY, Split, generate
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import Workload, build_workload


def _gavel() -> Workload:
    speeds = built_in_speeds()
    return build_workload(drawn(8, speeds, seed=5, jobs_per_hour=6.0), speeds, cluster(2))


def _philly() -> Workload:
    profiles = built_in_profiles()
    trace = generate(12, seed=5, split=Split(20, 70, 10), models=profiles.models, jobs_per_hour=10.0, gpu_mix=PHILLY)
    return build_workload(trace, profiles, homogeneous(2))


def _of_two_models() -> Workload:
    """Jobs of one GPU that come in threes; one model gains nothing on the faster type. Two may share a V100."""
    speeds = {("gains", "K80"): 1.0, ("gains", "V100"): 4.0, ("same", "K80"): 1.0, ("same", "V100"): 1.0}
    made = {key: flat_profile(speed) for key, speed in speeds.items()}
    size: dict[str, Any] = {
        "nodes": 1,
        "gpus_per_node": 2,
        "cpus_per_node": 16,
        "memory_gib_per_node": 64,
        "gpu_memory_gib": 16,
    }
    pools = tuple(SimulatedPool(name=kind, gpu_type=kind, **size, replicas=2) for kind in ("K80", "V100"))
    jobs = [traced(f"j{n}", 900.0 * (n // 3), 4000, model=("gains", "same")[n % 2]) for n in range(9)]
    table = ProfileTable(["gains", "same"], lambda model, kind, _: made[model, kind], {})
    found = build_workload(jobs, table, Cluster(pools))
    usage = {"V100": Usage(compute=0.3, bandwidth=0.1, memory_bytes=GIB, model="m")}
    return replace(found, tasks=tuple(replace(task, usage=usage) for task in found.tasks))


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Snapshot]:
    """What was planned in both ways, one after the other. Its jobs go on."""
    compared: list[Snapshot] = []

    def both(snapshot: Snapshot, config: PlanConfig, memory: Memory) -> Plan:
        fresh = plan(snapshot, config, Memory())
        answer = plan(snapshot, config, memory)
        assert answer == fresh
        compared.append(snapshot)
        return answer

    monkeypatch.setattr(planner, "plan", both)
    return compared


CASES: list[tuple[Workload, dict[str, Any]]] = [
    (_philly(), {"mechanism": "tune"}),
    (_philly(), {"mechanism": "proportional"}),
    (_gavel(), {"mechanism": "proportional"}),
]


@pytest.mark.parametrize(("workload", "options"), CASES, ids=["tune", "proportional", "types"])
@pytest.mark.parametrize("policy", sorted(POLICIES.keys() - BY_COST))
def test_what_the_planner_remembers_changes_no_plan_of_a_simulation(
    planned: list[Snapshot], workload: Workload, options: dict[str, Any], policy: str
) -> None:
    simulate(workload, Options.of(policy=policy, round_s=1800.0, **options))
    assert len(planned) > 8


@pytest.mark.parametrize("policy", ["fifo", "las", "max-min-fairness", "finish-time-fairness"])
def test_nor_does_it_where_speeds_are_measured_as_jobs_run(planned: list[Snapshot], policy: str) -> None:
    simulate(_of_two_models(), Options.of(policy=policy, mechanism="proportional", measured_types=1))
    assert any(job.measured for snapshot in planned for job in snapshot.jobs)


@pytest.mark.parametrize("policy", ["fifo", "las", "max-min-fairness"])
def test_nor_does_it_where_jobs_share_gpus(planned: list[Snapshot], policy: str) -> None:
    slower = Truth(Fixed(0.6), deviation=0.1)
    simulate(_of_two_models(), Options.of(policy=policy, mechanism="tune", colocation="auto", truth=slower))
    assert any(job.shared for snapshot in planned for job in snapshot.jobs)
