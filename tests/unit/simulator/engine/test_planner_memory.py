"""Each plan of a simulation is the one that a planner without memory makes, although simulated jobs are objects that
change as they run."""

from typing import Any

import pytest

from synergy_core.cache import Memory
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.plan import plan
from synergy_core.policies import POLICIES
from synergy_core.policies.rounds.time_shares import BY_COST
from synergy_simulator.engine import planner
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.reproductions.gavel.common import cluster
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


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modes of the plans that were compared, one after the other."""
    compared: list[str] = []

    def both(snapshot: Snapshot, config: PlanConfig, memory: Memory) -> Plan:
        fresh = plan(snapshot, config, Memory())
        answer = plan(snapshot, config, memory)
        assert answer == fresh
        compared.append(config.mode)
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
    plans: list[str], workload: Workload, options: dict[str, Any], policy: str
) -> None:
    simulate(workload, Options.of(policy=policy, round_s=1800.0, **options))
    assert len(plans) > 8
