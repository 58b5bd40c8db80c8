"""A simulation whose rounds are planned by counting GPUs has the result of one whose rounds are planned in general."""

import pytest

from synergy_core import plan as planner
from synergy_core.policies import POLICIES
from synergy_core.policies.rounds.time_shares import BY_COST
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.outcome import Outcome
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.report.metrics import JobRow, job_rows
from synergy_simulator.reproductions.gavel.common import cluster
from synergy_simulator.workloads.gavel_mix import built_in_speeds, drawn
from synergy_simulator.workloads.generator import PHILLY, Split, generate
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import Workload, build_workload


def _gavel() -> Workload:
    """Jobs of one GPU that are not equally fast on three types."""
    speeds = built_in_speeds()
    return build_workload(drawn(10, speeds, seed=3, jobs_per_hour=6.0), speeds, cluster(2))


def _philly() -> Workload:
    """Jobs of several GPUs on one type."""
    profiles = built_in_profiles()
    split = Split(20, 70, 10)
    trace = generate(14, seed=3, split=split, models=profiles.models, jobs_per_hour=8.0, gpu_mix=PHILLY)
    return build_workload(trace, profiles, homogeneous(2))


def _told(outcome: Outcome) -> tuple[list[JobRow], object, float, float]:
    """All that does not tell of time measured, to the last digit."""
    usage = outcome.usage
    return job_rows(outcome), outcome.segments, usage.gpu_s, usage.cost


@pytest.mark.parametrize("workload", [_gavel(), _philly()], ids=["gavel", "philly"])
@pytest.mark.parametrize("policy", sorted(POLICIES.keys() - BY_COST))
def test_counting_changes_nothing(monkeypatch: pytest.MonkeyPatch, workload: Workload, policy: str) -> None:
    options = Options.of(policy=policy, mechanism="proportional", round_s=3600.0, record=True)
    counted = simulate(workload, options)
    monkeypatch.setattr(planner, "whole_gpus", lambda *_: None)
    assert _told(simulate(workload, options)) == _told(counted)
