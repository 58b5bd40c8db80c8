"""What a user may get wrong is refused by the API server itself, with a message that names the field."""

from typing import Any

import pytest

from support.api_server import manifests as samples
from synergy_kube import KubeClient
from synergy_kube.errors import ApiError
from synergy_kube.resources import GPU_POOLS, SCHEDULING_POLICIES, TENANTS, THROUGHPUT_PROFILES, TRAINING_JOBS, Resource

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("custom_resources")]

FIRST = "spec.template.spec.containers.0"
MATRIX = "spec.profile.matrices.0"
NAMED = "spec.profile.matrices[0]"

JOBS: dict[str, tuple[str, Any, str]] = {
    "no spec": ("spec", None, "spec: Required value"),
    "no gpus": ("spec.gpus", None, "spec.gpus: Required value"),
    "no GPUs at all": ("spec.gpus", 0, "spec.gpus: Invalid value: 0"),
    "gpus not a number": ("spec.gpus", "two", "spec.gpus: Invalid value: "),
    "gpus not whole": ("spec.gpus", 1.5, "spec.gpus: Invalid value: "),
    "no steps": ("spec.steps", None, "give exactly one of steps, epochs and maxRunSeconds"),
    "steps and epochs": ("spec.epochs", 3, "give exactly one of steps, epochs and maxRunSeconds"),
    "steps and a time": ("spec.maxRunSeconds", 60, "give exactly one of steps, epochs and maxRunSeconds"),
    "zero steps": ("spec.steps", 0, "spec.steps: Invalid value: 0"),
    "uneven workers": ("spec.gpusPerWorker", 3, "spec.gpusPerWorker: Invalid value"),
    "unknown field": ("spec.gpu", 1, 'unknown field "spec.gpu"'),
    "name too long": ("metadata.name", "n" * 51, "metadata.name must be at most 50 characters"),
    "name with a dot": ("metadata.name", "a.b", "metadata.name must have no dot"),
    "after itself": ("spec.after", [{"job": "full"}], "after must not name the job itself"),
    "after one job twice": ("spec.after", [{"job": "a"}, {"job": "a"}], "spec.after[1]: Duplicate value"),
    "after a job without a name": ("spec.after", [{}], "spec.after[0].job: Required value"),
    "no template": ("spec.template", None, "spec.template: Required value"),
    "template without spec": ("spec.template.spec", None, "spec.template.spec: Required value"),
    "template without containers": (
        "spec.template.spec.containers",
        None,
        "spec.template.spec.containers: Required value",
    ),
    "template with an empty list": (
        "spec.template.spec.containers",
        [],
        "spec.template.spec.containers: Invalid value: 0: spec.template.spec.containers in body should have at least 1",
    ),
    "container without name": (f"{FIRST}.name", None, "spec.template.spec.containers[0].name: Required value"),
    "container without image": (f"{FIRST}.image", None, "spec.template.spec.containers[0].image is required"),
    "container with an empty image": (f"{FIRST}.image", "", "spec.template.spec.containers[0].image is required"),
    "container without command": (f"{FIRST}.command", None, "spec.template.spec.containers[0].command is required"),
    "container with an empty command": (f"{FIRST}.command", [], "spec.template.spec.containers[0].command is required"),
    "command not a list": (f"{FIRST}.command", "sh", "spec.template.spec.containers[0].command: Invalid value"),
    "GPU type twice": ("spec.gpuTypes", ["T4", "T4"], "spec.gpuTypes[1]: Duplicate value"),
    "fraction above 1": (
        "spec.sharing.minThroughputFraction",
        1.5,
        "spec.sharing.minThroughputFraction: Invalid value",
    ),
    "a reference without a model": (
        "spec.sharing",
        {
            "allowed": True,
            "reference": True,
            "usage": [{"gpuType": "V100", "compute": 0.3, "bandwidth": 0.2, "memory": "1Gi"}],
        },
        "a reference needs allowed, and a usage that names its model",
    ),
    "a reference that does not share": (
        "spec.sharing",
        {
            "reference": True,
            "usage": [{"gpuType": "V100", "compute": 0.3, "bandwidth": 0.2, "memory": "1Gi", "model": "Net"}],
        },
        "a reference needs allowed, and a usage that names its model",
    ),
    "usage without memory": (
        "spec.sharing.usage",
        [{"gpuType": "V100", "compute": 0.3, "bandwidth": 0.2}],
        "spec.sharing.usage[0].memory: Required value",
    ),
    "usage of one type twice": (
        "spec.sharing.usage",
        [{"gpuType": "V100", "compute": 0.3, "bandwidth": 0.2, "memory": "1Gi"}] * 2,
        "spec.sharing.usage[1]: Duplicate value",
    ),
    "empty GPU type": ("spec.gpuTypes", [""], "spec.gpuTypes[0]: Invalid value"),
    "zero weight": ("spec.weight", 0, "spec.weight: Invalid value: 0"),
    "weight without measure": ("spec.weight", 1e7, "spec.weight: Invalid value: 1e+07"),
    "deadline not a time": ("spec.slo.deadline", "tomorrow", "spec.slo.deadline: Invalid value"),
    "empty promise": ("spec.slo", {}, "spec.slo.deadline: Required value"),
    "CPU not a quantity": ("spec.resources.min.cpu", "many", "spec.resources.min.cpu: Invalid value"),
    "CPU with a long exponent": ("spec.resources.min.cpu", "1e999999999", "spec.resources.min.cpu: Invalid value"),
    "CPU with one in the maximum": ("spec.resources.max.cpu", "1e+999999999", "spec.resources.max.cpu: Invalid value"),
    "CPU negative": ("spec.resources.min.cpu", -1, "spec.resources.min.cpu: Invalid value"),
    "CPU negative as text": ("spec.resources.min.cpu", "-1", "spec.resources.min.cpu: Invalid value"),
    "CPU zero": ("spec.resources.max.cpu", "0", "spec.resources.max.cpu: Invalid value"),
    "CPU zero as a number": ("spec.resources.max.cpu", 0, "spec.resources.max.cpu: Invalid value"),
    "CPU minimum above maximum": ("spec.resources.min.cpu", "24001m", "min.cpu must not be above max.cpu"),
    "memory minimum above maximum": ("spec.resources.min.memory", "1Ti", "min.memory must not be above max.memory"),
    "memory not a quantity": ("spec.resources.max.memory", "64GB", "spec.resources.max.memory: Invalid value"),
    "data set of no bytes": ("spec.dataset.bytes", 0, "spec.dataset.bytes: Invalid value: 0"),
    "data set without samples": ("spec.dataset.samples", None, "spec.dataset.samples: Required value"),
    "unknown mode": ("spec.profile.mode", "Guess", 'spec.profile.mode: Unsupported value: "Guess"'),
    "provided without matrices": ("spec.profile.matrices", [], "spec.profile.matrices: Invalid value"),
    "one matrix twice": (f"{MATRIX}.gpuType", "T4", "spec.profile.matrices[1]: Duplicate value"),
    "matrix without type": (f"{MATRIX}.gpuType", None, f"{NAMED}.gpuType: Required value"),
    "a row missing": (f"{MATRIX}.stepsPerSecond", [[1, 2]], f"{NAMED}.stepsPerSecond: Invalid value"),
    "a row too short": (f"{MATRIX}.stepsPerSecond", [[1, 2], [1]], f"{NAMED}.stepsPerSecond: Invalid value"),
    "an empty row": (f"{MATRIX}.stepsPerSecond", [[1, 2], []], f"{NAMED}.stepsPerSecond[1]: Invalid value"),
    "zero throughput": (f"{MATRIX}.stepsPerSecond.1.0", 0, f"{NAMED}.stepsPerSecond[1][0]: Invalid value: 0"),
    "negative throughput": (f"{MATRIX}.stepsPerSecond.0.1", -2, f"{NAMED}.stepsPerSecond[0][1]: Invalid value: -2"),
    "throughput of nothing": (f"{MATRIX}.stepsPerSecond.0.1", 1e300, f"{NAMED}.stepsPerSecond[0][1]: Invalid value"),
    "throughput as text": (f"{MATRIX}.stepsPerSecond.0.1", "2", f"{NAMED}.stepsPerSecond[0][1]: Invalid value"),
    "CPU axis falls": (f"{MATRIX}.cpuMillis", [2, 1], f"{NAMED}.cpuMillis: Invalid value"),
    "CPU axis with a value twice": (f"{MATRIX}.cpuMillis", [2, 2], f"{NAMED}.cpuMillis: Invalid value"),
    "CPU axis from zero": (f"{MATRIX}.cpuMillis.0", 0, f"{NAMED}.cpuMillis[0]: Invalid value: 0"),
    "CPU axis empty": (f"{MATRIX}.cpuMillis", [], f"{NAMED}.cpuMillis: Invalid value"),
    "memory axis falls": (f"{MATRIX}.memoryBytes", [2, 1], f"{NAMED}.memoryBytes: Invalid value"),
    "too few profile steps": ("spec.profile.steps", 1, "spec.profile.steps: Invalid value: 1"),
    "zero CPU step": ("spec.profile.cpuStep", 0, "spec.profile.cpuStep: Invalid value"),
    "unknown way to leave": ("spec.preemption", "Maybe", 'spec.preemption: Unsupported value: "Maybe"'),
    "unknown placement": ("spec.placement", "Near", 'spec.placement: Unsupported value: "Near"'),
    "sharing as a word": ("spec.sharing.allowed", "yes", "spec.sharing.allowed: Invalid value"),
    "negative backoff limit": ("spec.backoffLimit", -1, "spec.backoffLimit: Invalid value: -1"),
    "negative time to live": ("spec.ttlSecondsAfterFinished", -1, "spec.ttlSecondsAfterFinished: Invalid value: -1"),
}
OTHERS: dict[str, tuple[Resource, samples.Manifest, str, Any, str]] = {
    "pool without selector": (
        GPU_POOLS,
        samples.FULL_POOL,
        "spec.nodeSelector",
        None,
        "spec.nodeSelector: Required value",
    ),
    "pool that selects all": (GPU_POOLS, samples.FULL_POOL, "spec.nodeSelector", {}, "spec.nodeSelector"),
    "pool without type": (GPU_POOLS, samples.FULL_POOL, "spec.gpuType", None, "spec.gpuType: Required value"),
    "negative price": (GPU_POOLS, samples.FULL_POOL, "spec.pricePerHour", -1, "spec.pricePerHour: Invalid value"),
    "a maintenance that ends before it begins": (
        GPU_POOLS,
        samples.FULL_POOL,
        "spec.maintenance",
        [{"start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}],
        "spec.maintenance[0].end: Invalid value",
    ),
    "a maintenance without an end": (
        GPU_POOLS,
        samples.FULL_POOL,
        "spec.maintenance",
        [{"start": "2026-01-02T00:00:00Z"}],
        "spec.maintenance[0].end: Required value",
    ),
    "too many levels": (GPU_POOLS, samples.FULL_POOL, "spec.topology", list("abcde"), "spec.topology: Too many"),
    "a bandwidth of no level": (
        GPU_POOLS,
        samples.FULL_POOL,
        "spec.topologyBandwidth",
        {"test/rack": 1, "test/room": 1},
        "topologyBandwidth names a label key that is not in topology",
    ),
    "a bandwidth without levels": (
        GPU_POOLS,
        samples.FULL_POOL,
        "spec.topology",
        None,
        "topologyBandwidth names a label key that is not in topology",
    ),
    "nodes that fail before they usually come": (
        GPU_POOLS,
        samples.FULL_POOL,
        "spec.autoscaling.timeoutSeconds",
        119,
        "timeoutSeconds must be at least provisionSeconds",
    ),
    "new nodes with devices of DRA": (
        GPU_POOLS,
        samples.FULL_POOL,
        "spec.devices",
        {"backend": "DRA", "deviceClass": "gpu.example.com"},
        "autoscaling needs devices of a device plugin",
    ),
    "new nodes without GPUs": (
        GPU_POOLS,
        samples.FULL_POOL,
        "spec.autoscaling.node.gpus",
        0,
        "spec.autoscaling.node.gpus",
    ),
    "a price below nothing": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.autoscaling.maxPricePerHour",
        -1,
        "spec.autoscaling.maxPricePerHour: Invalid value",
    ),
    "replicas without MPS": (
        GPU_POOLS,
        samples.FULL_POOL,
        "spec.sharing.mode",
        "None",
        "spec.sharing.replicas: Invalid value",
    ),
    "too many replicas": (GPU_POOLS, samples.FULL_POOL, "spec.sharing.replicas", 49, "spec.sharing.replicas"),
    "unknown preference": (
        GPU_POOLS,
        samples.FULL_POOL,
        "spec.sharing.preference",
        "Random",
        'spec.sharing.preference: Unsupported value: "Random"',
    ),
    "unknown colocation": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.colocation",
        "always",
        'spec.colocation: Unsupported value: "always"',
    ),
    "reserved CPU negative": (GPU_POOLS, samples.FULL_POOL, "spec.systemReserved.cpu", "-1", "spec.systemReserved.cpu"),
    "unknown policy": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.policy",
        "best",
        'spec.policy: Unsupported value: "best"',
    ),
    "unknown mechanism": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.mechanism",
        "magic",
        'spec.mechanism: Unsupported value: "magic"',
    ),
    "agnostic without several GPU types": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.policy",
        "las",
        "agnostic needs one of the policies allox, finish-time-fairness,",
    ),
    "placements without an allocation matrix": (
        SCHEDULING_POLICIES,
        {**samples.FULL_POLICY, "spec": {**samples.FULL_POLICY["spec"], "agnostic": False}},
        "spec.policy",
        "las",
        "placementSensitive needs one of the policies allox, finish-time-fairness,",
    ),
    "pairs without an allocation matrix": (
        SCHEDULING_POLICIES,
        {
            **samples.FULL_POLICY,
            "spec": {**samples.FULL_POLICY["spec"], "agnostic": False, "placementSensitive": False, "policy": "las"},
        },
        "spec.colocation",
        "gavel",
        "colocation gavel needs one of the policies fifo, finish-time-fairness,",
    ),
    "tenant without weight": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.tenants.0.weight",
        0,
        "spec.tenants[0].weight: Invalid value: 0",
    ),
    "tenant with another policy": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.tenants.0.policy",
        "las",
        'spec.tenants[0].policy: Unsupported value: "las"',
    ),
    "tenant named twice": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.tenants",
        [{"name": "a"}, {"name": "a"}],
        "spec.tenants[1]: Duplicate value",
    ),
    "round too short": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.roundSeconds",
        1,
        "spec.roundSeconds: Invalid value: 1",
    ),
    "thresholds that fall": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.queues.thresholdsGPUSeconds",
        [3600, 60],
        "spec.queues.thresholdsGPUSeconds: Invalid value",
    ),
    "a threshold twice": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.queues.thresholdsGPUSeconds",
        [60, 60],
        "must ascend, each value once",
    ),
    "a threshold of nothing": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.queues.thresholdsGPUSeconds",
        [0, 60],
        "spec.queues.thresholdsGPUSeconds[0]: Invalid value: 0",
    ),
    "promotion of everyone always": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.queues.promoteKnob",
        0,
        "spec.queues.promoteKnob: Invalid value: 0",
    ),
    "a limit above the whole": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.placement.packLimitPercent",
        101,
        "spec.placement.packLimitPercent: Invalid value: 101",
    ),
    "a negative minimum run": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.preemption.minimumRunSeconds",
        -1,
        "spec.preemption.minimumRunSeconds: Invalid value: -1",
    ),
    "too large a share": (
        SCHEDULING_POLICIES,
        samples.FULL_POLICY,
        "spec.profiling.maxGpuPercent",
        101,
        "spec.profiling.maxGpuPercent: Invalid value: 101",
    ),
    "guarantee above its limit": (
        TENANTS,
        samples.FULL_TENANT,
        "spec.guarantee",
        {"T4": 1, "V100": 8},
        "guarantee must not be above limit, for any GPU type",
    ),
    "parent of itself": (
        TENANTS,
        samples.FULL_TENANT,
        "spec.parent",
        "full",
        "spec.parent must not be the Tenant itself",
    ),
    "guarantee negative": (
        TENANTS,
        samples.FULL_TENANT,
        "spec.guarantee.V100",
        -1,
        "spec.guarantee.V100: Invalid value",
    ),
    "lending not whole": (TENANTS, samples.FULL_TENANT, "spec.lending.V100", 0.5, "spec.lending.V100: Invalid value"),
    "limit without measure": (
        TENANTS,
        samples.FULL_TENANT,
        "spec.limit.V100",
        1 << 21,
        "spec.limit.V100: Invalid value",
    ),
    "too many GPU types": (
        TENANTS,
        samples.FULL_TENANT,
        "spec.borrowing",
        {f"T{number}": 1 for number in range(17)},
        "spec.borrowing: Too many: 17: must have at most 16 items",
    ),
    "GPU type too long": (
        TENANTS,
        samples.FULL_TENANT,
        "spec.lending",
        {"T" * 64: 1},
        "a GPU type has 1 to 63 characters",
    ),
    "profile without matrix": (
        THROUGHPUT_PROFILES,
        samples.FULL_PROFILE,
        "spec.matrices",
        [],
        "spec.matrices: Invalid value",
    ),
    "profile of another shape": (
        THROUGHPUT_PROFILES,
        samples.FULL_PROFILE,
        "spec.matrices.0.stepsPerSecond",
        [[1]],
        "spec.matrices[0].stepsPerSecond: Invalid value",
    ),
    "profile with an error without measure": (
        THROUGHPUT_PROFILES,
        samples.FULL_PROFILE,
        "spec.points.0.relativeError",
        1e300,
        "spec.points[0].relativeError: Invalid value",
    ),
    "profile whose run has one": (
        THROUGHPUT_PROFILES,
        samples.FULL_PROFILE,
        "spec.points.0.runs.0.relativeError",
        1e300,
        "spec.points[0].runs[0].relativeError: Invalid value",
    ),
    "profile with a confidence without measure": (
        THROUGHPUT_PROFILES,
        samples.FULL_PROFILE,
        "spec.confidence.0.memoryError",
        1e300,
        "spec.confidence[0].memoryError: Invalid value",
    ),
    "short fingerprint": (THROUGHPUT_PROFILES, samples.FULL_PROFILE, "spec.fingerprint", "abc", "spec.fingerprint"),
}


async def _refusal(kube: KubeClient, resource: Resource, body: samples.Manifest) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await kube.create(resource, body, "default" if resource.namespaced else None, dry_run=True)
    return caught.value


@pytest.mark.parametrize("case", JOBS)
async def test_a_wrong_training_job_is_refused_and_the_message_names_the_field(kube: KubeClient, case: str) -> None:
    path, value, words = JOBS[case]
    error = await _refusal(kube, TRAINING_JOBS, samples.changed(samples.FULL_JOB, path, value))
    assert error.code in (400, 422)
    assert words in error.message


@pytest.mark.parametrize("case", OTHERS)
async def test_another_wrong_resource_is_refused_and_the_message_names_the_field(kube: KubeClient, case: str) -> None:
    resource, good, path, value, words = OTHERS[case]
    error = await _refusal(kube, resource, samples.changed(good, path, value))
    assert error.code in (400, 422)
    assert words in error.message


@pytest.mark.parametrize("field", ["epochs", "maxRunSeconds"])
async def test_epochs_or_a_time_take_the_place_of_steps(kube: KubeClient, namespace: str, field: str) -> None:
    job = samples.changed(samples.changed(samples.SMALL_JOB, "spec.steps", None), f"spec.{field}", 7)
    await kube.create(TRAINING_JOBS, job, namespace)
    assert (await kube.get(TRAINING_JOBS, "small", namespace))["spec"][field] == 7
    error = await _refusal(kube, TRAINING_JOBS, samples.changed(job, "spec.throughput", {"regex": "step"}))
    assert "epochs and maxRunSeconds need the library in the script: give steps with throughput" in error.message


async def test_gpus_cannot_be_changed_but_the_rest_can(kube: KubeClient, namespace: str) -> None:
    await kube.create(TRAINING_JOBS, samples.SMALL_JOB, namespace)
    await kube.merge_patch(TRAINING_JOBS, "small", {"spec": {"steps": 20, "weight": 3}}, namespace)
    with pytest.raises(ApiError, match=r"spec\.gpus: Invalid value: .*gpus is fixed for the life of the job"):
        await kube.merge_patch(TRAINING_JOBS, "small", {"spec": {"gpus": 2}}, namespace)
    assert (await kube.get(TRAINING_JOBS, "small", namespace))["spec"]["gpus"] == 1


@pytest.mark.parametrize(("before", "after"), [(2, 4), (None, 2), (2, None)])
async def test_the_size_of_workers_cannot_be_changed_set_or_unset(
    kube: KubeClient, namespace: str, before: int | None, after: int | None
) -> None:
    job = samples.changed(samples.SMALL_JOB, "spec.gpus", 4)
    if before is not None:
        job = samples.changed(job, "spec.gpusPerWorker", before)
    await kube.create(TRAINING_JOBS, job, namespace)
    with pytest.raises(ApiError, match=r"spec\.gpusPerWorker: .*gpusPerWorker is fixed for the life of the job"):
        await kube.merge_patch(TRAINING_JOBS, "small", {"spec": {"gpusPerWorker": after}}, namespace)


@pytest.mark.parametrize(("before", "after"), [(None, "a"), ("a", "b"), ("a", None)])
async def test_a_job_cannot_be_given_another_object(
    kube: KubeClient, namespace: str, before: str | None, after: str | None
) -> None:
    def of(name: str | None) -> dict[str, str] | None:
        return {"apiVersion": "batch/v1", "kind": "Job", "name": name} if name else None

    job = samples.changed(samples.SMALL_JOB, "spec.managed", of(before)) if before else samples.SMALL_JOB
    await kube.create(TRAINING_JOBS, job, namespace)
    with pytest.raises(ApiError, match=r"spec\.managed: .*managed is fixed for the life of the job"):
        await kube.merge_patch(TRAINING_JOBS, "small", {"spec": {"managed": of(after)}}, namespace)
