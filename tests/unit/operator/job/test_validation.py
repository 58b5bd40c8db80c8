"""What a job is refused for, with words that name the field; and that the nodes are looked at again."""

import math
from typing import Any

import msgspec
import pytest

from support.operator.objects import job_manifest, node
from support.operator.world import World
from synergy_api.reasons import Reason
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_operator.job.validity.validation import validation_error
from synergy_operator.views.cluster import ClusterView, read_cluster
from synergy_operator.views.job import MOST_TEMPLATE_BYTES, read_job

CONTAINER: dict[str, Any] = {"name": "train", "image": "i", "command": ["c"]}
NODES = [node("n1", gpus=4, cpu=8, gib=32), node("n2", gpus=4, cpu=8, gib=32), node("t1", kind="T4", gpus=2, cpu=4)]


def with_containers(*containers: dict[str, Any], **pod: Any) -> dict[str, Any]:
    """A spec with this pod template."""
    return {"template": {"spec": {"containers": list(containers), **pod}}}


def provided(rows: list[list[float]], **matrix: Any) -> dict[str, Any]:
    """A spec with this matrix."""
    full = {
        "gpuType": "V100",
        "cpuMillis": [1000 * (i + 1) for i in range(len(rows))],
        "memoryBytes": [1000 * (i + 1) for i in range(len(rows[0]))],
        "stepsPerSecond": rows,
        **matrix,
    }
    return {"profile": {"mode": "Provided", "matrices": [full]}}


def deep_list(levels: int) -> list[Any]:
    """Lists in lists."""
    return [deep_list(levels - 1)] if levels else []


def side(**resources: Any) -> dict[str, Any]:
    """A second container."""
    return {"name": "side", "image": "i", "resources": resources}


CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no container": (with_containers(), "NoContainer", "spec.template.spec.containers"),
    "no image": (with_containers({"name": "a", "command": ["c"]}), "NoImage", "containers[0].image"),
    "no command": (with_containers({"name": "a", "image": "i"}), "NoCommand", "containers[0].command"),
    "a fixed node": (with_containers(CONTAINER, nodeName="n1"), "NodeNameSet", "nodeName"),
    "containers that are no list": (
        {"template": {"spec": {"containers": "train"}}},
        "InvalidSpec",
        "spec.template.spec.containers: Input should be a valid list",
    ),
    "tolerations that are no list": (
        with_containers(CONTAINER, tolerations={"key": "a"}),
        "InvalidSpec",
        "spec.template.spec.tolerations",
    ),
    "a node selector that is no map": (
        with_containers(CONTAINER, nodeSelector="gpu"),
        "InvalidSpec",
        "spec.template.spec.nodeSelector",
    ),
    "a toleration with a number": (
        with_containers(CONTAINER, tolerations=[{"key": 1}]),
        "InvalidSpec",
        "spec.template.spec.tolerations.0.key",
    ),
    "a term that is no map": (
        with_containers(
            CONTAINER,
            affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": ["x"]}}},
        ),
        "InvalidSpec",
        "nodeSelectorTerms.0",
    ),
    "a variable without a name": (with_containers({**CONTAINER, "env": [{"value": "1"}]}), "InvalidSpec", "env.0.name"),
    "an expression that is none": (
        {"throughput": {"regex": "step ("}},
        "InvalidSpec",
        "spec.throughput.regex: missing )",
    ),
    "a group that means nothing": (
        {"throughput": {"regex": "(?P<epoch>1)"}},
        "InvalidSpec",
        "spec.throughput.regex: group epoch has no meaning, use step or speed",
    ),
    "an expression that repeats without end": (
        {"throughput": {"regex": "a{99999999999}"}},
        "InvalidSpec",
        "spec.throughput.regex: the repetition number is too large",
    ),
    "an expression that takes seconds to compile": (
        {"throughput": {"regex": "(?i)" + r"[\0-\U0010ffff]" * 8 + "[a-\u4e00]"}},
        "InvalidSpec",
        "spec.throughput.regex: 9 ranges of characters end beyond ASCII, 8 at most: use a class such as \\w",
    ),
    "an expression of nothing but groups": (
        {"throughput": {"regex": "(" * 511 + ")" * 511}},
        "InvalidSpec",
        "spec.throughput.regex: its groups are nested too deeply",
    ),
    "a template without a bottom": (
        with_containers(CONTAINER, volumes=deep_list(300)),
        "InvalidSpec",
        "spec.template: its fields are nested more than 100 levels deep",
    ),
    "a quantity that takes hours to compute": (
        with_containers(CONTAINER, side(requests={"memory": "1e99999999"})),
        "InvalidSpec",
        "'1e99999999' is not a Kubernetes quantity",
    ),
    "a quantity of the first container that keeps the API server busy": (
        with_containers({**CONTAINER, "resources": {"limits": {"ephemeral-storage": "1e999999999"}}}),
        "InvalidSpec",
        "'1e999999999' is not a Kubernetes quantity",
    ),
    "a volume's size that does": (
        with_containers(CONTAINER, volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1e999999999"}}]),
        "InvalidSpec",
        "'1e999999999' is not a Kubernetes quantity",
    ),
    "a claim's size that does": (
        with_containers(
            CONTAINER,
            volumes=[
                {
                    "name": "v",
                    "ephemeral": {
                        "volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1e999999999"}}}}
                    },
                }
            ],
        ),
        "InvalidSpec",
        "'1e999999999' is not a Kubernetes quantity",
    ),
    "more than a quantity can be": (
        {"resources": {"max": {"memory": "16Ei"}}},
        "InvalidSpec",
        "'16Ei' is beyond 9223372036854775807",
    ),
    "a matrix faster than anything": (provided([[1e300]]), "InvalidSpec", "less than or equal to 1000000000"),
    "a weight beside which nobody else counts": ({"weight": 1e300}, "InvalidSpec", "spec.weight"),
    "a quantity that is none": (with_containers(CONTAINER, side(requests={"cpu": "lots"})), "InvalidSpec", "'lots'"),
    "a sidecar that requests a GPU": (
        with_containers(CONTAINER, side(requests={"nvidia.com/gpu": "1"}, limits={"cpu": "1"})),
        "SidecarWantsGPU",
        "side",
    ),
    "a sidecar with a GPU": (
        with_containers(CONTAINER, side(limits={"nvidia.com/gpu": "1"})),
        "SidecarWantsGPU",
        "container side",
    ),
    "sidecars that take all": (
        with_containers(CONTAINER, side(requests={"cpu": "2"})),
        "SidecarsTooLarge",
        "2 CPU",
    ),
    "an init container larger than the share": (
        with_containers(CONTAINER, initContainers=[{**side(requests={"memory": "33Gi"}), "name": "fetch"}]),
        "InitContainerTooLarge",
        "init container fetch needs 0 CPU and 33Gi memory",
    ),
    "an init container too large beside a sidecar that stays": (
        with_containers(
            CONTAINER,
            initContainers=[
                {**side(requests={"cpu": "1500m"}), "name": "proxy", "restartPolicy": "Always"},
                {**side(limits={"cpu": "1500m"}), "name": "fetch"},
            ],
        ),
        "InitContainerTooLarge",
        "init container fetch needs 3 CPU",
    ),
    "an init container with a quantity that is none": (
        with_containers(CONTAINER, initContainers=[side(requests={"cpu": "lots"})]),
        "InvalidSpec",
        "'lots'",
    ),
    "a type that is not there": ({"gpuTypes": ["H100"]}, "UnknownGPUType", "H100, the cluster has T4, V100"),
    "more GPUs than all nodes of a type have": ({"gpus": 9}, "TooManyGPUs", "spec.gpus is 9, the most"),
    "more GPUs than one node has": (
        {"gpus": 8, "placement": "Consolidate"},
        "TooManyGPUs",
        "one node (spec.placement is Consolidate) can hold is 4",
    ),
    "workers that leave GPUs over": ({"gpus": 8, "gpusPerWorker": 3}, "TooManyGPUs", "can hold is 6"),
    "a worker larger than a node": ({"gpus": 8, "gpusPerWorker": 8}, "WorkerTooLarge", "has 4 GPUs (type V100)"),
    "less memory than a container starts with": (
        {"resources": {"max": {"memory": "1"}}},
        "InvalidSpec",
        "spec.resources.max.memory is 1: too little for a container to start",
    ),
    "a CPU minimum beyond all nodes": ({"resources": {"min": {"cpu": "17"}}}, "MinTooLarge", "16 of type V100"),
    "a memory minimum beyond all nodes": (
        {"resources": {"min": {"memory": "1Ti"}}},
        "MinTooLarge",
        "spec.resources.min.memory",
    ),
    "a matrix that falls as CPU grows": (
        provided([[1.0, 2.0], [1.1, 1.9]]),
        "MatrixFalls",
        "from 2.0 to 1.9 as CPU grows, at [1][1]",
    ),
    "a matrix that falls as memory grows": (provided([[1.0, 0.9]]), "MatrixFalls", "as memory grows, at [0][1]"),
    "a matrix with a zero": (provided([[0.0]]), "InvalidSpec", "spec.profile.matrices.0.stepsPerSecond.0.0"),
    "a matrix with a negative": (provided([[-1.0]]), "InvalidSpec", "greater than 0.000001"),
    "a matrix with a NaN": (provided([[math.nan]]), "InvalidSpec", "stepsPerSecond.0.0"),
    "a matrix of the wrong shape": (
        provided([[1.0]], cpuMillis=[1, 2]),
        "InvalidSpec",
        "one row for each value of cpuMillis",
    ),
    "a matrix for another type only": (provided([[1.0]], gpuType="H100"), "MatrixMissing", "T4, V100"),
    "a field that nobody knows": ({"colour": "red"}, "InvalidSpec", "spec.colour"),
    "a count that is none": ({"steps": "many"}, "InvalidSpec", "spec.steps"),
}


@pytest.fixture(scope="module")
def cluster() -> ClusterView:
    """Two V100 nodes of four GPUs, a T4 node of two."""
    return read_cluster(NODES, [], SchedulingPolicySpec())


@pytest.mark.parametrize("case", CASES)
def test_a_bad_job_is_told_what_to_change(case: str, cluster: ClusterView) -> None:
    spec, reason, words = CASES[case]
    found = validation_error(read_job(job_manifest(**spec)), cluster)
    assert found is not None
    assert found.reason.value == reason
    assert words in found.message


@pytest.mark.parametrize(
    "spec",
    [
        {"gpus": 8},
        {"gpus": 8, "gpusPerWorker": 4},
        {"gpus": 4, "placement": "Consolidate"},
        {"gpus": 2, "gpuTypes": ["T4", "H100"]},
        with_containers(CONTAINER, side(requests={"cpu": "1"})),
        with_containers(CONTAINER, initContainers=[side(requests={"cpu": "2", "memory": "8Gi"})]),
        provided([[1.0, 1.0], [1.0, 2.0]]),
        {"throughput": {"regex": "(?i)" + "[\0-\U0010ffff]" * 8}},
    ],
)
def test_what_fits_passes(spec: dict[str, Any], cluster: ClusterView) -> None:
    assert validation_error(read_job(job_manifest(**spec)), cluster) is None


@pytest.mark.parametrize(
    ("fits", "too_large", "reason"),
    [
        ({"gpusPerWorker": 8}, {"gpus": 9, "gpusPerWorker": 9}, Reason.WORKER_TOO_LARGE),
        ({"placement": "Consolidate"}, {"gpus": 9, "placement": "Consolidate"}, Reason.TOO_MANY_GPUS),
    ],
)
def test_of_a_type_with_nodes_of_several_sizes_the_largest_decides_what_one_node_can_hold(
    fits: dict[str, Any], too_large: dict[str, Any], reason: Reason
) -> None:
    nodes = [node("small", gpus=2), node("large", gpus=8), node("middle", gpus=6)]
    cluster = read_cluster(nodes, [], SchedulingPolicySpec())
    assert validation_error(read_job(job_manifest(gpus=8, **fits)), cluster) is None
    found = validation_error(read_job(job_manifest(**too_large)), cluster)
    assert found is not None
    assert found.reason is reason


def test_without_gpu_nodes_every_job_waits_for_some() -> None:
    found = validation_error(read_job(job_manifest()), read_cluster([], [], SchedulingPolicySpec()))
    assert found is not None
    assert found.reason is Reason.NO_GPU_NODES


def test_nodes_that_a_pool_may_get_count() -> None:
    how = {"maxNodes": 3, "node": {"gpus": 8, "cpu": "32", "memory": "128Gi"}}
    spec = {"nodeSelector": {"pool": "cloud"}, "gpuType": "H100", "autoscaling": how}
    pool = {"metadata": {"name": "cloud"}, "spec": spec}
    there = node("h1", kind="H100", gpus=8)
    there["metadata"]["labels"]["pool"] = "cloud"
    for nodes in ([], [there]):
        cluster = read_cluster(nodes, [pool], SchedulingPolicySpec())
        assert validation_error(read_job(job_manifest(gpus=24, gpuTypes=["H100"])), cluster) is None
        found = validation_error(read_job(job_manifest(gpus=25, gpuTypes=["H100"])), cluster)
        assert found is not None
        assert found.reason is Reason.TOO_MANY_GPUS
        assert [one.name for one in cluster.nodes] == [one["metadata"]["name"] for one in nodes], (
            "nobody is profiled there"
        )


@pytest.mark.parametrize("case", CASES)
def test_a_bad_job_stays_pending_with_condition_and_warning_and_never_raises(case: str) -> None:
    world = World(NODES, **CASES[case][0])
    world.settle()
    assert world.status.phase == "Pending"
    assert world.reason("Valid") == CASES[case][1]
    assert world.pod_names() == []
    (event,) = [event for event in world.events if event.kind == "Warning"]
    assert event.reason == CASES[case][1]


def test_a_job_too_large_for_the_cluster_is_queued_once_nodes_are_added() -> None:
    world = World([node("n1", gpus=4)], gpus=8)
    world.settle()
    assert world.reason("Running") == "NotValid"
    world.nodes["n2"] = node("n2", gpus=4)
    world.settle()
    assert world.status.phase == "Queued"
    assert world.reason("Valid") == "Accepted"


def test_a_running_job_goes_on_when_its_spec_or_the_nodes_turn_bad() -> None:
    world = World([node("n1"), node("n2")], gpus=2)
    world.settle()
    world.grant(("n1", 2, 6000, 8))
    world.run_all()
    world.edit(lambda spec: spec["template"]["spec"]["containers"][0].pop("command"))
    world.settle()
    assert world.status.phase == "Running"
    assert world.reason("Valid") == "NoCommand"
    world.exit("job-1-0", 75)
    world.revoke()
    world.settle()
    assert world.status.phase == "Pending"


@pytest.mark.parametrize(("beside", "refused"), [(0, False), (1, True)])
def test_a_template_above_the_limit_is_refused_with_its_size_and_the_limit(beside: int, refused: bool) -> None:
    spec = with_containers({**CONTAINER, "args": [""]})
    bare = len(msgspec.json.encode(spec["template"]))
    spec["template"]["spec"]["containers"][0]["args"] = ["x" * (MOST_TEMPLATE_BYTES - bare + beside)]
    found = validation_error(read_job(job_manifest(**spec)), read_cluster(NODES, [], SchedulingPolicySpec()))
    assert (found is not None and found.reason is Reason.SPEC_TOO_LARGE) is refused
    if found is not None:
        assert f"{MOST_TEMPLATE_BYTES + beside} bytes" in found.message
        assert str(MOST_TEMPLATE_BYTES) in found.message


def test_a_spec_that_cannot_be_read_any_more_leaves_phase_and_pods_of_a_running_job() -> None:
    """As after a downgrade: an older operator does not know a field's new form."""
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.edit(lambda spec: spec.update(gpus="many"))
    world.settle()
    assert (world.reason("Valid"), world.status.phase) == ("InvalidSpec", "Running")
    assert world.pod_names() == ["job-1-0"]


def test_a_new_job_whose_spec_cannot_be_read_is_pending() -> None:
    world = World(gpus="many")
    world.settle()
    assert (world.reason("Valid"), world.status.phase) == ("InvalidSpec", "Pending")
