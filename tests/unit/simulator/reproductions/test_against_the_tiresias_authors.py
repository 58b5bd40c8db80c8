"""Beside the Tiresias authors' own simulator, on their trace of 60 jobs for 16 GPUs in steps of a second."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from support import papers
from synergy_core.model.config import PriorityQueues
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import read_cluster
from synergy_simulator.inputs.traces import read_trace
from synergy_simulator.report.metrics import metrics_of
from synergy_simulator.workloads.workload import Workload, build_workload

pytestmark = pytest.mark.papers

SAME = {"srtf": "shortest", "srsf": "shortest-gpu", "2d-las": "dlas-gpu", "yarn-cs": "fifo", "best-effort": "fjf"}
"""Our names, and theirs for the same policy. Their FIFO schedulers ask for consolidation with every job."""


@pytest.fixture(scope="module")
def tables() -> Path:
    folder = papers.found("tiresias")
    if folder is None:
        pytest.skip("the papers' data tables are not beside the project (PAPERS_DATA names their folder)")
    return folder


@pytest.fixture(scope="module")
def workload(tables: Path) -> Workload:
    return build_workload(read_trace(tables / "60_job.csv"), None, read_cluster(tables / "n4g4.csv"))


@pytest.fixture(scope="module")
def theirs(tables: Path) -> Mapping[str, float]:
    results = json.loads((tables / "results.json").read_text())
    return {one["schedule"]: one["avg_jct_s"] for one in results if one["cluster"] == "n4g4.csv"}


def _average_jct_s(workload: Workload, policy: str, services: tuple[float, ...] = ()) -> float:
    queues = PriorityQueues(thresholds_gpu_s=(3250.0, 7200.0), service_gpu_s=services)
    options = Options.of(policy=policy, mechanism="proportional", round_s=1.0, queues=queues)
    return metrics_of(simulate(workload, options)).avg_jct_s


@pytest.mark.parametrize("policy", sorted(SAME))
def test_average_jct_is_theirs_or_better(workload: Workload, theirs: Mapping[str, float], policy: str) -> None:
    assert _average_jct_s(workload, policy) < 1.005 * theirs[SAME[policy]]


def test_gittins_that_knows_the_distribution_is_no_worse(workload: Workload, theirs: Mapping[str, float]) -> None:
    services = tuple(task.gpus * task.alone_s for task in workload.tasks)
    assert _average_jct_s(workload, "2d-gittins", services) < 1.005 * theirs["dlas-gpu-gittins"]
