"""What the API server itself refuses once a job runs: quota and limits, and that the longest name is not refused."""

import pytest

import synergy_devcluster
from support.operator_stage import NODES, Stage, condition
from support.programs import run
from support.waiting import eventually
from synergy_api.names import MAX_JOB_NAME
from synergy_api.timestamps import parse_time
from synergy_kube.resources import JOBS, PODS, SERVICES, THROUGHPUT_PROFILES, Resource

pytestmark = pytest.mark.integration

LIMITS = Resource("", "v1", "limitranges", "LimitRange", namespaced=True)
AUTO = {"mode": "Auto"}


async def limit_cpu(stage: Stage) -> None:
    """No container of the namespace may have more than 1 CPU."""
    spec = {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}
    await stage.kube.create(LIMITS, {"metadata": {"name": "small"}, "spec": spec}, stage.namespace)


async def described(stage: Stage, cluster: synergy_devcluster.Cluster, name: str) -> str:
    """What `kubectl describe` says of the job, in one line."""
    return " ".join((await run(cluster, "kubectl", "-n", stage.namespace, "describe", "tj", name)).split())


async def test_a_limit_range_s_words_reach_the_user_and_each_try_waits_longer(
    stage: Stage, devcluster: synergy_devcluster.Cluster
) -> None:
    await limit_cpu(stage)
    await stage.submit()
    await stage.phase("Queued")
    waits = []
    for number in (1, 2):
        await stage.grant((NODES[0], 1, 3000, 8), run=number)
        job = await stage.until("the run to end", lambda s, run=number: s.get("service", {}).get("endedRun") == run)
        service = job["status"]["service"]
        assert service["last"]["outcome"] == "Evicted"
        since = condition(job["status"], "Running")["lastTransitionTime"]
        waits.append(parse_time(service["retryAt"]) - parse_time(since))
    assert waits[1] >= 20.0
    assert job["status"]["problem"]["reason"] == "PodRefused"
    await stage.told("PodRefused")
    text = await described(stage, devcluster, "job")
    assert "maximum cpu usage per Container is 1, but limit is 3" in text
    assert "raise the ResourceQuota or LimitRange that these words name" in text


async def test_a_profile_job_whose_pod_is_refused_says_so_in_the_api_server_s_words(stage: Stage) -> None:
    await limit_cpu(stage)
    await stage.submit(profile=AUTO)
    job = await stage.until("a request", lambda s: (s.get("profile") or {}).get("request"))
    request = job["status"]["profile"]["request"]
    share = (NODES[0], request["gpus"], request["cpuMillis"], request["memoryBytes"] >> 30)
    await stage.grant(share, purpose="Profile", gpuType=request["gpuType"])
    job = await stage.until("the run to end", lambda s: s.get("service", {}).get("endedRun") == 1, seconds=60)
    running = condition(job["status"], "Running")
    assert running["reason"] == "PodRefused"
    assert "maximum cpu usage per Container is 1" in running["message"]
    assert job["status"]["service"]["failures"] == 0
    await stage.told("PodRefused")


async def test_a_name_of_the_greatest_length_is_good_for_pods_service_and_profile_jobs(stage: Stage) -> None:
    name = "n" * MAX_JOB_NAME
    await stage.submit(name, gpus=2, gpusPerWorker=1)
    await stage.phase("Queued", name=name)
    await stage.grant((NODES[0], 2, 6000, 16), name=name, run=99_999)
    await stage.bind(2)
    await stage.phase("Running", name=name)
    assert await stage.kube.get(SERVICES, f"tj-{name}", stage.namespace)
    for rank in (0, 1):
        pod = await stage.kube.get(PODS, f"{name}-99999-{rank}", stage.namespace)
        assert pod["spec"]["hostname"] == pod["metadata"]["name"]

    measured = "m" * MAX_JOB_NAME
    await stage.submit(measured, profile=AUTO)
    await stage.until("a request", lambda s: (s.get("profile") or {}).get("request"), name=measured)
    await stage.grant((NODES[1], 1, 12_000, 8), name=measured, run=99_999, purpose="Profile")

    async def made() -> bool:
        jobs = (await stage.kube.list(JOBS, stage.namespace))["items"]
        pods = [pod for pod in await stage.pods() if pod["metadata"]["name"].startswith("m")]
        return len(jobs) == 1 and len(pods) == 1

    await eventually(made, seconds=20, what="the profile Job's pod", every=0.05)


async def test_what_is_wrong_stands_at_the_head_of_the_description(
    stage: Stage, devcluster: synergy_devcluster.Cluster
) -> None:
    await stage.submit(gpus=4096)
    await stage.phase("Pending")
    await stage.told("TooManyGPUs")
    text = await described(stage, devcluster, "job")
    assert "Problem: Message: spec.gpus is 4096, the most that all nodes of one GPU type can hold is" in text
    assert "Reason: TooManyGPUs" in text
    wide = await run(devcluster, "kubectl", "-n", stage.namespace, "get", "tj", "job", "-o", "wide")
    assert "TooManyGPUs" in wide


async def test_a_throughput_profile_that_falls_as_cpu_grows_says_so_in_its_description(
    stage: Stage, devcluster: synergy_devcluster.Cluster
) -> None:
    name = f"{stage.namespace}-falls"
    matrix = {"gpuType": "V100", "cpuMillis": [1000, 2000], "memoryBytes": [1], "stepsPerSecond": [[2], [1]]}
    spec = {"fingerprint": name, "image": "x", "gpus": 1, "matrices": [matrix], "measuredAt": "2026-11-21T10:00:00Z"}
    await stage.kube.create(THROUGHPUT_PROFILES, {"metadata": {"name": name}, "spec": spec})
    try:

        async def told() -> str:
            text = " ".join((await run(devcluster, "kubectl", "describe", "tp", name)).split())
            return text if "Warning MatrixFalls" in text else ""

        text = await eventually(told, seconds=20, what="the profile's event")
        assert "spec.matrices[0].stepsPerSecond falls from 2.0 to 1.0 as CPU grows, at [1][0]" in text
        assert "Reason: MatrixFalls Status: False Type: Valid" in text
    finally:
        await stage.kube.delete(THROUGHPUT_PROFILES, name)
