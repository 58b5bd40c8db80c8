"""Beside the Synergy authors' own simulator, on their trace of 150 jobs for 32 GPUs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support import papers
from synergy_simulator.engine import Options, simulate
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.inputs.profiles import read_profiles
from synergy_simulator.inputs.traces import read_trace
from synergy_simulator.metrics import metrics_of
from synergy_simulator.workload import Workload, build_workload

pytestmark = pytest.mark.papers


@pytest.fixture(scope="module")
def tables() -> Path:
    folder = papers.found("synergy")
    if folder is None:
        pytest.skip("the papers' data tables are not beside the project (PAPERS_DATA names their folder)")
    return folder


@pytest.fixture(scope="module")
def workload(tables: Path) -> Workload:
    profiles = read_profiles(tables / "throughputs.json")
    return build_workload(read_trace(tables / "trace_g32.csv"), profiles, homogeneous(4))


@pytest.fixture(scope="module")
def theirs(tables: Path) -> Mapping[str, Any]:
    results = json.loads((tables / "results.json").read_text())
    return {entry["sched"]: entry for entry in results if entry["trace"] == "g32"}


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
@pytest.mark.parametrize(("mechanism", "name"), [("proportional", "fair"), ("tune", "tune")])
def test_average_jct_is_theirs_or_better(
    workload: Workload, theirs: Mapping[str, Any], policy: str, mechanism: str, name: str
) -> None:
    ours = metrics_of(simulate(workload, Options(policy=policy, mechanism=mechanism)))
    reference = theirs[f"{policy.upper()}+{name}"]
    assert ours.measured == reference["jobs_measured"]
    assert 0.9 * reference["avg_jct_h"] < ours.avg_jct_s / 3600 < 1.02 * reference["avg_jct_h"]
    assert ours.makespan_s / 3600 == pytest.approx(reference["makespan_h"], rel=0.02)
