"""Jobs that take turns on two GPU types, with their checkpoints, while operator and extender are restarted: what they
have had of each type is neither lost nor counted twice.

Takes about a minute: rounds of 5 s, a real node and a fake one.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.on_cluster.components import kill
from support.on_cluster.jobs import fake_template, matrix, reaches, submit
from support.on_cluster.namespaces import alone_on
from support.on_cluster.neighbours import label
from support.on_cluster.observer import Observer
from support.waiting import eventually
from synergy_api.timestamps import parse_time
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import PODS, TRAINING_JOBS

pytestmark = pytest.mark.integration

ROUND_S = 5
FAKE_NODE = "fake-v100-022"
JOBS = ("ping", "pong")
TRAINING = """
import time, synergy_job
checkpoint = synergy_job.Checkpoint("/checkpoints/state.pkl")
def load():
    step = (checkpoint.read() or {"step": 0})["step"]
    with open("/checkpoints/begun", "a") as file:
        print(step, file=file)
    return step
for _ in synergy_job.iterate(range(10), save=lambda step: checkpoint.write({"step": step}), load=load):
    time.sleep(0.1)
"""
Json = dict[str, Any]


@pytest_asyncio.fixture
async def two_types(kube: KubeClient, namespace: str) -> AsyncIterator[None]:
    """Two real A100s and a fake node of V100s that only this test's jobs ask for."""
    await alone_on(kube, REAL_NODE, but=namespace)
    await label(kube, [REAL_NODE, FAKE_NODE], pool="types")
    yield
    await label(kube, [REAL_NODE, FAKE_NODE], pool=None)


def job(checkpoints: Path) -> Json:
    """A job for both A100s that is four times as fast there; on a fake node its pod only seems to run."""
    template = fake_template(3600)
    container = template["spec"]["containers"][0]
    container |= {"command": ["python3", "-c", TRAINING]}
    container["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints"}]
    template["spec"] |= {
        "nodeSelector": {"pool": "types"},
        "volumes": [{"name": "checkpoints", "hostPath": {"path": str(checkpoints)}}],
    }
    matrices = [matrix(gpu_type, {100: speed}, 1 << 26) for gpu_type, speed in (("A100", 4.0), ("V100", 1.0))]
    return {
        "gpus": 2,
        "gpuTypes": ["A100", "V100"],
        "steps": 1_000_000,
        "preemption": "Signal",
        "profile": {"mode": "Provided", "matrices": matrices},
        "resources": {"max": {"cpu": "400m", "memory": "256Mi"}},
        "template": template,
    }


class Books:
    """Seconds that each job's workers ran on each type, by what a watch shows of its pods: no status of ours counts."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self.seconds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.runs: dict[str, list[str]] = defaultdict(list)
        """GPU types of each job's runs that have ended, in their order."""
        self._ended: set[str] = set()
        self._pods = Reflector(kube, PODS, namespace=namespace, on_change=self._changed)

    async def __aenter__(self) -> "Books":
        self._following = asyncio.create_task(self._pods.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._following.cancel()

    def _changed(self, change: Change) -> None:
        pod = change.new or change.old
        if pod is None or pod["metadata"]["name"] in self._ended:
            return
        (state,) = [one["state"] for one in pod["status"].get("containerStatuses") or []] or [{}]
        ended = state.get("terminated")
        if ended is not None:
            self._close(pod, parse_time(ended["startedAt"]), parse_time(ended["finishedAt"]))
        elif change.new is None and "running" in state:
            self._close(pod, parse_time(state["running"]["startedAt"]), time.time())

    def _close(self, pod: Json, start: float, end: float) -> None:
        job = pod["metadata"]["labels"]["kube-synergy.dev/job"]
        gpu_type = "A100" if pod["spec"]["nodeName"] == REAL_NODE else "V100"
        self._ended.add(pod["metadata"]["name"])
        self.runs[job].append(gpu_type)
        self.seconds[job][gpu_type] += end - start


@pytest.mark.usefixtures("pools")
@pytest.mark.timeout(300)
async def test_jobs_take_turns_on_the_fast_type_and_restarts_change_nothing_of_what_they_have_had(
    kube: KubeClient,
    namespace: str,
    policy: Callable[..., Awaitable[None]],
    two_types: None,
    tmp_path: Path,
) -> None:
    await policy(policy="max-min-fairness-water-filling", mechanism="proportional", roundSeconds=ROUND_S)
    async with Observer(kube) as observer, Books(kube, namespace) as books:
        for name in JOBS:
            (tmp_path / name).mkdir()
            (tmp_path / name).chmod(0o777)
            await submit(kube, namespace, name, **job(tmp_path / name))

        async def taken_turns(times: int) -> bool:
            return all(books.runs[name].count("A100") >= times for name in JOBS)

        await eventually(lambda: taken_turns(1), seconds=90, what="each job to have been on the A100s")
        await kill(kube, "operator", "extender")
        await eventually(lambda: taken_turns(2), seconds=120, what="each job to have been there again")
        for name in JOBS:
            await kube.merge_patch(TRAINING_JOBS, name, {"spec": {"suspend": True}}, namespace)
        found = [(await reaches(kube, namespace, name, "Suspended", seconds=60))["status"] for name in JOBS]
    assert observer.broken == []
    for name, status in zip(JOBS, found, strict=True):
        service, runs = status["service"], books.runs[name]
        had = books.seconds[name]
        assert service["receivedSeconds"].keys() == had.keys()
        for gpu_type, seconds in service["receivedSeconds"].items():
            slack = 1.5 * runs.count(gpu_type)  # starts and ends are known to the second
            assert seconds == pytest.approx(had[gpu_type], abs=slack), (gpu_type, runs)
        assert service["attainedGPUSeconds"] == pytest.approx(2 * sum(service["receivedSeconds"].values()), abs=0.1)
        assert service.get("failures", 0) == 0
        begun = [int(line) for line in (tmp_path / name / "begun").read_text().split()]
        assert begun[0] == 0
        assert begun == sorted(set(begun)), "each run on the A100s goes on beyond where the one before it began"
        assert len(begun) >= 2
