"""What people see of a TrainingJob: `kubectl get tj`, the stored object, and the events of a wait.

Extender and operator are real, the nodes are kwok's, and the test reports progress as a worker does.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

import synergy_devcluster
from support.extender.world import Operator, Replica
from support.on_cluster.jobs import empties, reaches
from support.operator.stage import running_operator
from support.programs import run
from support.waiting import eventually
from synergy_kube import KubeClient
from synergy_kube.resources import EVENTS, GPU_POOLS, PODS, TRAINING_JOBS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("product")]

Json = dict[str, Any]
NODE = "fake-v100-020"
STORED_DEFAULTS = {"weight": 1, "preemption": "Checkpoint", "placement": "Auto", "suspend": False, "backoffLimit": 3}
"""What docs/api.md says the API server stores beside what the user wrote."""


@pytest_asyncio.fixture
async def product(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    extender: Replica,
    kube_scheduler: object,
    tmp_path: Path,
) -> AsyncIterator[None]:
    """An operator beside the extender, and a pool that gives its GPUs a short name."""
    spec = {"gpuType": "V100", "nodeSelector": {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB"}}
    await kube.create(GPU_POOLS, {"metadata": {"name": "v100"}, "spec": spec})
    async with running_operator(devcluster.kubeconfig, tmp_path):
        yield
    await kube.delete(GPU_POOLS, "v100")


def quickstart(repository: Path) -> Json:
    """The job of the quickstart, for a fake node: unmeasured, and without the volumes that no node has."""
    documents = yaml.safe_load_all((repository / "examples/quickstart/job.yaml").read_text("utf-8"))
    job: Json = next(document for document in documents if document["kind"] == "TrainingJob")
    pod = job["spec"]["template"]["spec"]
    del pod["volumes"], pod["containers"][0]["volumeMounts"]
    pod["nodeSelector"] = {"kubernetes.io/hostname": NODE}
    job["spec"]["profile"] = {"mode": "Skip"}
    return job


def rows(table: str) -> dict[str, dict[str, str]]:
    """A table of kubectl by the first column, each row by the headers; a blank cell is an empty text."""
    head, *lines = table.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+", head)]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    cells = [{head[a:b].strip(): line[a:b].strip() for a, b in spans} for line in lines]
    return {row["NAME"]: row for row in cells}


async def test_a_job_that_runs_is_shown_in_full_and_stored_as_short_as_it_was_written(
    devcluster: synergy_devcluster.Cluster,
    extender: Replica,
    operator: Operator,
    repository: Path,
    tmp_path: Path,
) -> None:
    job = quickstart(repository)
    file = tmp_path / "first.yaml"
    file.write_text(yaml.safe_dump(job))
    await run(devcluster, "kubectl", "apply", "--namespace", operator.namespace, "--filename", str(file))
    await reaches(operator.kube, operator.namespace, "first", "Running", seconds=60)
    pod = await operator.kube.get(PODS, "first-1-0", operator.namespace)
    headers = {"Authorization": f"Bearer {await operator.token(pod)}"}
    async with extender.api() as api:
        report = {"step": 409, "steps_per_second": 3.2}
        assert (await api.post("/v1/lease", json=report, headers=headers)).status_code == 200

    async def reported() -> Json | None:
        now = await operator.job("first")
        return now if "progress" in now["status"] else None

    await eventually(reported, seconds=20, what="the progress to be written", every=0.1)
    found = rows(await run(devcluster, "kubectl", "get", "tj", "--namespace", operator.namespace, "-o", "wide"))
    row = found["first"]
    assert list(row) == [
        "NAME", "PHASE", "PROGRESS", "GPUS", "REASON", "QUEUE", "AGE",
        "START", "CPU", "MEMORY", "SPEED", "PREEMPTIONS", "PARTNERS", "RUN", "NODES", "CLUSTER",
    ]  # fmt: skip
    assert (row["PHASE"], row["PROGRESS"], row["GPUS"]) == ("Running", "409/1000", "1 V100")
    assert (row["REASON"], row["QUEUE"], row["START"], row["PARTNERS"]) == ("", "", "", "")
    assert (row["SPEED"], row["PREEMPTIONS"], row["RUN"], row["NODES"]) == ("3.2 steps/s", "0", "1", "1")
    given, share = row["CPU"].split("/")
    assert given == share, "without a profile a job has its proportional share"
    assert re.fullmatch(r"[\d.]+/[\d.]+Gi", row["MEMORY"])

    stored = await operator.job("first")
    assert empties(stored["status"], "status") == []
    profile = {"mode": "Skip", "steps": 50, "warmupSteps": 5, "timeoutSeconds": 600, "counters": "Auto"}
    assert stored["spec"] == {**job["spec"], **STORED_DEFAULTS, "profile": profile}


async def test_a_job_that_has_succeeded_is_stored_short_too(operator: Operator, repository: Path) -> None:
    job = quickstart(repository)
    job["spec"]["template"]["metadata"] = {"annotations": {"kwok.kube-synergy.dev/run-seconds": "1"}}
    await operator.kube.create(TRAINING_JOBS, job, operator.namespace)
    await reaches(operator.kube, operator.namespace, "first", "Succeeded", seconds=60)

    async def released() -> Json | None:
        """Its progress has a writer of its own, which may be the later one."""
        now = await operator.job("first")
        done = now["status"]["allocation"]["state"] == "Released" and "summary" in now["status"]
        return now if done else None

    stored = await eventually(released, seconds=20, what="its place to be released and its progress told", every=0.1)
    assert empties(stored["status"], "status") == []
    assert stored["status"]["summary"] == {"progress": "1000/1000"}


async def test_a_job_that_waits_shows_why_and_where_and_has_one_event_of_it_in_the_same_words(
    devcluster: synergy_devcluster.Cluster, operator: Operator, repository: Path
) -> None:
    for name, gpus in (("holds", 8), ("waits", 4)):
        job = quickstart(repository)
        job["metadata"]["name"], job["spec"]["gpus"] = name, gpus
        await operator.kube.create(TRAINING_JOBS, job, operator.namespace)
        if name == "holds":
            await reaches(operator.kube, operator.namespace, name, "Running", seconds=60)

    async def told() -> Json | None:
        now = await operator.job("waits")
        conditions = {one["type"]: one for one in now.get("status", {}).get("conditions", [])}
        return now if conditions.get("Running", {}).get("reason") == "NoFreeGPU" else None

    waits = (await eventually(told, seconds=40, what="the job to say why it waits", every=0.1))["status"]
    queue = waits["queue"]
    (running,) = (one for one in waits["conditions"] if one["type"] == "Running")
    assert (running["status"], running["message"]) == ("False", queue["message"])
    found = rows(await run(devcluster, "kubectl", "get", "tj", "--namespace", operator.namespace))
    row = found["waits"]
    assert (row["PHASE"], row["PROGRESS"], row["GPUS"], row["REASON"]) == ("Queued", "0/1000", "4", "NoFreeGPU")
    assert row["QUEUE"] == str(queue["position"])
    assert found["holds"]["GPUS"] == "8 V100"
    assert empties(waits, "status") == []

    async def posted() -> list[Json] | None:
        selector = "involvedObject.name=waits,reason=NoFreeGPU"
        events: list[Json] = (await operator.kube.list(EVENTS, operator.namespace, field_selector=selector))["items"]
        return events or None

    (event,) = await eventually(posted, seconds=20, what="the event", every=0.1)
    assert (event["type"], event["message"]) == ("Normal", queue["message"])
    changes = await run(devcluster, "kubectl", "events", "--namespace", operator.namespace, "--for", "tj/holds")
    assert "WorkersStarting" in changes
    assert "WorkersRunning" in changes
