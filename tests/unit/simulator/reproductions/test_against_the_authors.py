"""Beside the Synergy authors' own simulator, on their traces of 150 jobs for 32 GPUs and of 800 jobs for 128."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support import papers
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.inputs.profiles import read_profiles
from synergy_simulator.inputs.traces import read_trace
from synergy_simulator.report.metrics import metrics_of
from synergy_simulator.workloads.workload import Workload, build_workload

pytestmark = pytest.mark.papers


@pytest.fixture(scope="module")
def tables() -> Path:
    folder = papers.found("synergy")
    if folder is None:
        pytest.skip("the papers' data tables are not beside the project (PAPERS_DATA names their folder)")
    return folder


def _workload(tables: Path, trace: str, servers: int) -> Workload:
    profiles = read_profiles(tables / "throughputs.json")
    return build_workload(read_trace(tables / f"trace_{trace}.csv"), profiles, homogeneous(servers))


def _theirs(tables: Path, trace: str, scheduler: str) -> Mapping[str, Any]:
    results = json.loads((tables / "results.json").read_text())
    (found,) = [entry for entry in results if (entry["trace"], entry["sched"]) == (trace, scheduler)]
    return dict(found)


mechanisms = pytest.mark.parametrize(("mechanism", "name"), [("proportional", "fair"), ("tune", "tune")])


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
@mechanisms
def test_average_jct_is_theirs_or_better(tables: Path, policy: str, mechanism: str, name: str) -> None:
    ours = metrics_of(simulate(_workload(tables, "g32", 4), Options.of(policy=policy, mechanism=mechanism)))
    reference = _theirs(tables, "g32", f"{policy.upper()}+{name}")
    assert ours.measured == reference["jobs_measured"]
    assert 0.9 * reference["avg_jct_h"] < ours.avg_jct_s / 3600 < 1.02 * reference["avg_jct_h"]
    assert ours.makespan_s / 3600 == pytest.approx(reference["makespan_h"], rel=0.02)


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las", "ftf"])
@mechanisms
def test_so_it_is_under_every_policy_on_128_gpus(tables: Path, policy: str, mechanism: str, name: str) -> None:
    """Their finish-time fairness serves the smallest rho first, the wrong way round: there ours is far better."""
    ours = metrics_of(simulate(_workload(tables, "s800", 16), Options.of(policy=policy, mechanism=mechanism)))
    reference = _theirs(tables, "s800", f"{policy.upper()}+{name}")
    assert ours.measured == reference["jobs_measured"]
    assert ours.avg_jct_s / 3600 <= 1.02 * reference["avg_jct_h"]
    assert ours.avg_jct_s / 3600 > (0.7 if policy == "ftf" else 0.95) * reference["avg_jct_h"]
