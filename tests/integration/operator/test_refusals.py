"""What the API server itself refuses once a job runs: quota, limits, policies and names that are taken. Not refused is
the longest name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import synergy_devcluster
from support.operator.stage import NODES, Json, OperatorProcess, Stage, condition
from support.programs import run
from support.waiting import eventually
from synergy_api.names import MAX_JOB_NAME
from synergy_api.timestamps import parse_time
from synergy_kube import ApiError
from synergy_kube.resources import JOBS, PODS, SERVICES, THROUGHPUT_PROFILES, Resource

pytestmark = pytest.mark.integration

LIMITS = Resource("", "v1", "limitranges", "LimitRange", namespaced=True)
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", namespaced=True)
_ADMISSION = ("admissionregistration.k8s.io", "v1")
POLICIES = Resource(*_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False)
BINDINGS = Resource(
    *_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
AUTO = {"mode": "Auto"}


async def limit_cpu(stage: Stage) -> None:
    """No container of the namespace may have more than 1 CPU."""
    spec = {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}
    await stage.kube.create(LIMITS, {"metadata": {"name": "small"}, "spec": spec}, stage.namespace)


async def no_services(stage: Stage) -> None:
    """The namespace's quota leaves no room for a Service."""
    spec = {"hard": {"services": "0"}}
    await stage.kube.create(QUOTAS, {"metadata": {"name": "no-services"}, "spec": spec}, stage.namespace)
    probe = {"metadata": {"name": "probe"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}}}

    async def enforced() -> bool:
        return await _refused(stage, SERVICES, probe)

    await eventually(enforced, seconds=20, what="the quota to be enforced", every=0.1)


@asynccontextmanager
async def no_gate_falls(stage: Stage) -> AsyncIterator[None]:
    """A policy of the cluster denies every change that takes a scheduling gate away in the namespace."""
    name = f"no-gate-falls-{stage.namespace}"
    gates = "variables.before.size() <= variables.after.size()"
    variables = [
        {"name": when, "expression": f"has({root}.spec.schedulingGates) ? {root}.spec.schedulingGates : []"}
        for when, root in (("before", "oldObject"), ("after", "object"))
    ]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["UPDATE"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "variables": variables,
        "validations": [{"expression": gates, "message": "no gate falls here"}],
    }
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}}
    bound = {"policyName": name, "validationActions": ["Deny"], "matchResources": here}
    await stage.kube.create(POLICIES, {"metadata": {"name": name}, "spec": spec})
    await stage.kube.create(BINDINGS, {"metadata": {"name": name}, "spec": bound})
    nowhere = {"containers": [{"name": "c", "image": "example/c:1"}], "nodeSelector": {"example.com/no": "node"}}
    probe = {"metadata": {"generateName": "gated-"}, "spec": {**nowhere, "schedulingGates": [{"name": "a/b"}]}}

    async def enforced() -> bool:
        pod = (await stage.kube.create(PODS, probe, stage.namespace))["metadata"]["name"]
        try:
            await stage.kube.merge_patch(PODS, pod, {"spec": {"schedulingGates": []}}, stage.namespace)
        except ApiError as error:
            return "no gate falls here" in error.message
        finally:
            await stage.kube.delete(PODS, pod, stage.namespace, grace_seconds=0)
        return False

    try:
        await eventually(enforced, seconds=30, what="the policy to be enforced", every=0.2)
        yield
    finally:
        await stage.kube.delete(BINDINGS, name)
        await stage.kube.delete(POLICIES, name)


async def _refused(stage: Stage, resource: Resource, body: Json) -> bool:
    try:
        await stage.kube.create(resource, body, stage.namespace, dry_run=True)
    except ApiError as error:
        return error.code == 403
    return False


async def given_back(stage: Stage, run: int = 1) -> Json:
    """The job's status once the run has ended without a failure and without a pod."""
    job = await stage.until("the run to end", lambda s: s.get("service", {}).get("endedRun") == run)
    status: Json = job["status"]
    service = status["service"]
    assert (service["last"]["outcome"], service.get("failures", 0), service["refusals"]) == ("Evicted", 0, run)
    assert service["retryAt"]
    assert await stage.pods() == []
    return status


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


async def test_a_quota_on_services_gives_the_run_back_in_the_quota_s_words_and_is_counted(
    stage: Stage, operator: OperatorProcess
) -> None:
    await no_services(stage)
    before = await operator.metrics()
    await stage.submit(gpus=2)
    await stage.phase("Queued")
    for number in (1, 2):
        await stage.grant((NODES[0], 2, 6000, 16), run=number)
        status = await given_back(stage, number)
        running = condition(status, "Running")
        assert running["reason"] == "ServiceRefused"
        assert "exceeded quota: no-services" in running["message"]
    waited = parse_time(status["service"]["retryAt"]) - parse_time(running["lastTransitionTime"])
    assert waited >= 20.0
    assert status["problem"]["reason"] == "ServiceRefused"
    await stage.told("ServiceRefused")
    after = await operator.metrics()
    grown = {name for name, value in after.items() if value > before.get(name, 0.0)}
    assert grown >= {
        'kube_synergy_operator_refusals_total{reason="ServiceRefused"}',
        'kube_synergy_operator_runs_total{outcome="Evicted",purpose="Train"}',
        'kube_synergy_operator_reconciles_total{outcome="done"}',
        'kube_synergy_operator_reconciles_total{outcome="again"}',
        "kube_synergy_operator_reconcile_seconds_count",
        'kube_synergy_operator_api_errors_total{code="403"}',
    }
    assert {"kube_synergy_operator_queue_length", "kube_synergy_operator_queue_oldest_seconds"} <= after.keys()


async def test_a_service_of_somebody_else_is_left_as_it_is_and_the_run_is_given_back(stage: Stage) -> None:
    theirs = {"clusterIP": "None", "selector": {"app": "shop"}, "ports": [{"name": "http", "port": 80}]}
    made = await stage.kube.create(SERVICES, {"metadata": {"name": "tj-job"}, "spec": theirs}, stage.namespace)
    await stage.submit(gpus=2)
    await stage.phase("Queued")
    await stage.grant((NODES[0], 2, 6000, 16))
    running = condition(await given_back(stage), "Running")
    assert running["reason"] == "ServiceRefused"
    assert 'services "tj-job" already exists and is not of TrainingJob job' in running["message"]
    now = await stage.kube.get(SERVICES, "tj-job", stage.namespace)
    assert now["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    await stage.kube.delete(SERVICES, "tj-job", stage.namespace)
    await stage.grant((NODES[0], 2, 6000, 16), run=2)
    await stage.bind(1, run=2)
    await stage.phase("Running")


async def test_a_policy_that_denies_the_fall_of_gates_gives_the_run_back_in_its_words(stage: Stage) -> None:
    async with no_gate_falls(stage):
        await stage.submit(gpus=2, gpusPerWorker=1)
        await stage.phase("Queued")
        await stage.grant((NODES[0], 2, 6000, 16))
        running = condition(await given_back(stage), "Running")
        assert running["reason"] == "StartRefused"
        assert "no gate falls here" in running["message"]
        await stage.told("StartRefused")


async def test_a_run_that_was_revoked_before_its_service_was_allowed_ends(stage: Stage) -> None:
    await no_services(stage)
    await stage.submit(gpus=2)
    await stage.phase("Queued")
    allocation = await stage.grant((NODES[0], 2, 6000, 16), state="Revoked", reason="PodsNotStarted: run 1 was late")
    assert allocation.run == 1
    assert condition(await given_back(stage), "Running")["reason"] == "PodsNotStarted"


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
