"""Jobs of Kubernetes, Volcano, KAI and Kubeflow as TrainingJobs: what they say, and what is said of the rest."""

import copy
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from synergy_api.parts.template import depth_problem
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_view.moving import UNTYPED, Choices, Translation, translate

Json = dict[str, Any]
EXAMPLES = Path(__file__).parents[4] / "examples" / "moving"
A100 = Choices({UNTYPED: "A100"})
GPU = "nvidia.com/gpu"


def template(gpus: Any = 1, resource: str = GPU, **pod: Any) -> Json:
    container = {"name": "train", "image": "i", "command": ["c"], "resources": {"limits": {resource: gpus}}}
    return {"spec": {"containers": [container], **pod}}


def a_job(labels: Json | None = None, **spec: Any) -> Json:
    metadata = {"name": "j", "namespace": "ns", "labels": labels or {}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template(), **spec}}


def volcano(*tasks: Json, **spec: Any) -> Json:
    full = {"tasks": list(tasks), **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"}, "spec": full}


def pytorch(**spec: Any) -> Json:
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "p"}, "spec": spec}


def made(*objects: Json, choices: Choices = A100) -> Json:
    """The spec of the only TrainingJob."""
    found = translate(objects, choices)
    ((job, _),) = found.jobs
    spec: Json = job["spec"]
    return spec


def said(found: Translation) -> str:
    listed = [remark for _, remarks in (*found.tenants, *found.jobs) for remark in remarks]
    return "\n".join(f"{remark.source} {remark.path}: {remark.message}" for remark in (*listed, *found.others))


@pytest.mark.parametrize("name", ["kueue", "volcano", "kai"])
def test_the_jobs_of_each_example_belong_to_their_tenant(name: str) -> None:
    found = translate(list(yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text())), A100)
    tenants = {tenant["metadata"]["name"]: tenant["spec"] for tenant, _ in found.tenants}
    assert found.jobs
    for job, _ in found.jobs:
        spec = TrainingJobSpec.model_validate(job["spec"])
        assert not depth_problem(spec.template)
        tenant = tenants[spec.tenant]
        assert job["metadata"]["namespace"] in tenant["namespaces"]
        assert tenant["caps"]["maxNeverPreemptedGPUs"] >= spec.gpus


class TestBatchJob:
    def test_workers_are_those_that_run_at_once(self) -> None:
        spec = made(a_job(parallelism=3, backoffLimit=2, ttlSecondsAfterFinished=9, template=template(2)))
        assert (spec["gpus"], spec["gpusPerWorker"]) == (6, 2)
        assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (2, 9)
        assert spec["preemption"] == "Never"
        assert spec["profile"] == {"mode": "Skip"}
        assert "resources" not in spec["template"]["spec"]["containers"][0]

    def test_what_kueue_or_a_controller_wrote_is_left_out(self) -> None:
        labels = {
            "kueue.x-k8s.io/queue-name": "q",
            "controller-uid": "u",
            "batch.kubernetes.io/job-name": "j",
            "app": "a",
        }
        found = translate([a_job(labels, suspend=True, selector={"matchLabels": {}})], A100)
        ((job, _),) = found.jobs
        assert job["metadata"]["labels"] == {"app": "a"}
        assert "suspend" not in job["spec"]
        assert "was in queue q: its namespace ns decides" in said(found)

    def test_a_job_that_its_user_suspended_stays_so(self) -> None:
        assert made(a_job(suspend=True))["suspend"] is True

    def test_what_has_no_counterpart_is_said(self) -> None:
        found = translate(
            [
                a_job(
                    parallelism=2,
                    completions=5,
                    completionMode="Indexed",
                    activeDeadlineSeconds=60,
                    podFailurePolicy={"rules": []},
                    novelty=1,
                    template=template(restartPolicy="OnFailure"),
                )
            ],
            A100,
        )
        words = said(found)
        assert "make 3 TrainingJobs of it" in words
        for field in ("completionMode", "activeDeadlineSeconds", "podFailurePolicy", "novelty", "restartPolicy"):
            assert field in words

    def test_cpu_and_memory_are_minima_of_all_workers_and_other_resources_stay(self) -> None:
        given = template()
        given["spec"]["containers"][0]["resources"] = {
            "requests": {"cpu": "1500m", "memory": "2Gi", "rdma/hca": 1},
            "limits": {GPU: 1, "cpu": 3, "rdma/hca": 1},
        }
        spec = made(a_job(parallelism=2, template=given))
        assert spec["resources"] == {"min": {"cpu": "3", "memory": "4Gi"}}
        kept = spec["template"]["spec"]["containers"][0]["resources"]
        assert kept == {"requests": {"rdma/hca": 1}, "limits": {"rdma/hca": 1}}

    def test_a_selected_product_is_the_gpu_type(self) -> None:
        selector = {"nvidia.com/gpu.product": "Tesla-T4", "zone": "a"}
        spec = made(a_job(template=template(nodeSelector=selector)))
        assert spec["gpuTypes"] == ["Tesla-T4"]
        assert spec["template"]["spec"]["nodeSelector"] == {"zone": "a"}
        spec = made(a_job(template=template(nodeSelector={"nvidia.com/gpu.product": "Tesla-T4"})))
        assert "nodeSelector" not in spec["template"]["spec"]

    def test_a_generated_name_becomes_a_name(self) -> None:
        job = a_job()
        job["metadata"] = {"generateName": "sample-"}
        found = translate([job], A100)
        assert found.jobs[0][0]["metadata"] == {"name": "sample"}
        assert "kubectl apply needs a name: it is sample" in said(found)

    def test_topology_and_a_missing_command_are_said(self) -> None:
        given = template()
        del given["spec"]["containers"][0]["command"]
        given["metadata"] = {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}}
        words = said(translate([a_job(template=given)], A100))
        assert "containers[0].command: is required" in words
        assert "topology: spec.topology of a GPUPool" in words

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, "has ended"),
            (
                {"metadata": {"name": "j", "ownerReferences": [{"kind": "CronJob", "name": "n"}]}},
                "belongs to CronJob n",
            ),
            ({"metadata": {"name": "j" * 51}}, "50 characters at the most"),
            ({"metadata": {"name": "a.b"}}, "has no dot"),
            ({"spec": {"template": template(1, "nvidia.com/mig-1g.5gb")}}, "asks for no GPU that plans count"),
        ],
    )
    def test_some_are_left_out_and_said(self, change: Json, why: str) -> None:
        found = translate([{**a_job(), **change}], A100)
        assert not found.jobs
        assert why in said(found)

    @pytest.mark.parametrize(
        ("spec", "problem"),
        [
            ({"template": 5}, "Job j: spec.template.spec: must have containers"),
            ({"template": {"spec": {"containers": [5]}}}, "Job j: spec.template.spec: must have containers"),
            ({"parallelism": "x"}, "Job j: spec.parallelism: 'x' is no whole number"),
            ({"template": template("x")}, "Job j: "),
            ({"parallelism": 70000}, "Job j: the TrainingJob's spec.gpus: "),
        ],
    )
    def test_a_job_that_cannot_be_read_is_named(self, spec: Json, problem: str) -> None:
        with pytest.raises(ValueError, match=problem):
            translate([a_job(**spec)], A100)

    def test_an_amount_that_does_not_parse_is_named(self) -> None:
        given = template()
        given["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "much"}
        with pytest.raises(ValueError, match=r"Job j: spec\.template\.spec\.containers\[0\]\.resources: "):
            translate([a_job(template=given)], A100)

    def test_claims_of_devices_stay_in_the_template(self) -> None:
        given = template()
        given["spec"]["containers"][0]["resources"]["claims"] = [{"name": "nic"}]
        (first,) = made(a_job(template=given))["template"]["spec"]["containers"]
        assert first["resources"] == {"claims": [{"name": "nic"}]}


def _with(item: Json, path: tuple[Any, ...], value: Any) -> Json:
    """A copy of an object with another value at a path."""
    changed: Json = copy.deepcopy(item)
    place: Any = changed
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return changed


def _paths(item: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of all fields of an object."""
    children = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
    for name, value in children:
        yield (*path, name)
        yield from _paths(value, (*path, name))


class TestBadManifests:
    """Files are written by people, and no API server has checked them."""

    @pytest.mark.parametrize("name", ["kueue", "volcano", "kai"])
    def test_whatever_a_field_is_the_answer_is_a_translation_or_an_error_that_names_the_object(self, name: str) -> None:
        for item in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()):
            item["status"] = {"phase": "Pending", "conditions": [{"type": "Suspended", "status": "True"}]}
            for path in _paths(item):
                for value in (None, True, 1.5, "x", ["x"], {"x": "y"}, {1: 2}):
                    with suppress(ValueError):
                        translate([_with(item, path, value)], A100)

    @pytest.mark.parametrize(
        ("path", "value", "problem"),
        [
            (("metadata", "labels"), {"a": 1}, "metadata.labels: 'a': 1 must be a text: write it in quotes"),
            (("metadata", "ownerReferences"), ["x"], "metadata.ownerReferences: must be a list of objects"),
            (("status",), {"phase": []}, "status.phase: must be a text"),
            (("status",), {"conditions": [{"type": []}]}, "status.conditions[0].type: must be a text"),
            (("spec", "template", "metadata"), True, "spec.template.metadata: must be an object"),
            (("spec", "template", "spec", "nodeSelector"), ["a"], "spec.template.spec.nodeSelector: must be an object"),
            (
                ("spec", "template", "spec", "containers", 0, "resources", "limits"), {GPU: True},
                f"spec.template.spec.containers[0].resources.limits: '{GPU}': True is no quantity",
            ),
        ],
    )  # fmt: skip
    def test_the_field_is_named(self, path: tuple[Any, ...], value: Any, problem: str) -> None:
        with pytest.raises(ValueError, match=re.escape(f"Job j: {problem}")):
            translate([_with(a_job(), path, value)], A100)


class TestShares:
    @pytest.mark.parametrize("resource", ["nvidia.com/gpu.shared", "volcano.sh/vgpu-number"])
    def test_a_shared_device_is_a_gpu_that_the_job_may_share(self, resource: str) -> None:
        spec = made(a_job(template=template(1, resource)))
        assert (spec["gpus"], spec["sharing"]) == (1, {"allowed": True})
        assert "resources" not in spec["template"]["spec"]["containers"][0]

    def test_workers_with_parts_of_gpus_get_whole_ones(self) -> None:
        given = {"metadata": {"annotations": {"gpu-fraction": "0.5"}}, "spec": {"containers": [{"name": "c"}]}}
        found = translate([a_job(parallelism=2, template=given)], A100)
        assert found.jobs[0][0]["spec"]["gpus"] == 2
        assert "this one gets whole GPUs" in said(found)


class TestPod:
    def test_a_pod_is_a_job_of_one_worker(self) -> None:
        metadata = {"name": "p", "labels": {"kai.scheduler/queue": "q", "app": "a"}}
        spec = {**template(2)["spec"], "schedulerName": "kai-scheduler", "nodeName": "n", "serviceAccount": "s"}
        found = made({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        assert found["gpus"] == 2
        assert found["template"]["metadata"] == {"labels": {"app": "a"}}
        assert found["template"]["spec"].keys() == {"containers"}

    def test_a_pod_without_containers_is_named(self) -> None:
        with pytest.raises(ValueError, match="Pod p: spec: must have containers"):
            translate([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}], A100)


class TestVolcano:
    def test_the_task_with_gpus_is_the_job(self) -> None:
        found = translate(
            [
                volcano(
                    {"name": "ps", "replicas": 2, "template": {"spec": {"containers": [{"name": "c"}]}}},
                    {"name": "w", "replicas": 4, "template": template(), "dependsOn": {"name": ["ps"]}},
                    {"name": "eval", "template": template()},
                    minAvailable=3,
                    maxRetry=7,
                    priorityClassName="high",
                    plugins={"ssh": [], "odd": []},
                    volumes=[{"mountPath": "/a", "volumeClaimName": "c"}, {"mountPath": "/b", "volumeClaim": {"x": 1}}],
                )
            ],
            A100,
        )
        ((job, _),) = found.jobs
        spec = job["spec"]
        assert (spec["gpus"], spec["gpusPerWorker"], spec["backoffLimit"]) == (4, 1, 7)
        assert spec["priorityClassName"] == "high"
        assert spec["template"]["spec"]["volumes"] == [
            {"name": "volume-0", "persistentVolumeClaim": {"claimName": "c"}}
        ]
        assert spec["template"]["spec"]["containers"][0]["volumeMounts"] == [{"name": "volume-0", "mountPath": "/a"}]
        words = said(found)
        for part in (
            "task ps has no GPU",
            "a second task with GPUs is not translated",
            "3 of 5: all workers",
            "plugins.ssh: has no counterpart: start",
            "plugins.odd: has no counterpart",
            "make the claim yourself, and mount it at /b",
            "dependsOn: spec.after",
        ):
            assert part in words

    def test_a_job_without_gpus_stays(self) -> None:
        found = translate([volcano({"name": "a", "template": {"spec": {"containers": [{"name": "c"}]}}})], A100)
        assert not found.jobs
        assert "asks for no GPU" in said(found)

    def test_an_aborted_one_is_left_out(self) -> None:
        found = translate([{**volcano(), "status": {"state": {"phase": "Aborted"}}}], A100)
        assert "has ended" in said(found)

    def test_a_task_without_containers_is_named(self) -> None:
        with pytest.raises(ValueError, match=r"Job v: spec\.tasks\[0\]\.template: must have containers"):
            translate([volcano({"name": "a"})], A100)


class TestPyTorchJob:
    def test_master_and_workers_are_equal_workers(self) -> None:
        replicas = {
            "Master": {"replicas": 1, "restartPolicy": "ExitCode", "template": template()},
            "Worker": {"replicas": 3, "template": template(hostNetwork=True)},
        }
        policy = {
            "suspend": True,
            "cleanPodPolicy": "All",
            "schedulingPolicy": {"minAvailable": 2, "priorityClass": "high", "minResources": {"cpu": 1}},
        }
        found = translate(
            [pytorch(pytorchReplicaSpecs=replicas, runPolicy=policy, elasticPolicy={"maxReplicas": 4})], A100
        )
        ((job, _),) = found.jobs
        assert (job["spec"]["gpus"], job["spec"]["gpusPerWorker"], job["spec"]["suspend"]) == (4, 1, True)
        assert job["spec"]["template"]["spec"]["hostNetwork"] is True
        words = said(found)
        for part in (
            "Master.restartPolicy: ExitCode has no counterpart",
            "Master.template: differs from",
            "cleanPodPolicy: pods of the last run stay",
            "minAvailable: all 4 workers",
            "minResources: has no counterpart",
            "elasticPolicy: has no counterpart: the number of GPUs is fixed",
        ):
            assert part in words

    def test_a_master_without_gpus_is_left_out(self) -> None:
        no_gpus = {"spec": {"containers": [{"name": "c"}]}}
        found = translate(
            [pytorch(pytorchReplicaSpecs={"Master": {"template": no_gpus}, "Worker": {"template": template()}})], A100
        )
        assert found.jobs[0][0]["spec"]["gpus"] == 1
        assert "Master.template: has no GPU" in said(found)

    def test_a_queue_of_its_policy_counts_and_nothing_without_gpus_is_made(self) -> None:
        replicas = {"Worker": {"replicas": 0, "template": template()}}
        policy = {"schedulingPolicy": {"queue": "q"}}
        found = translate([pytorch(pytorchReplicaSpecs=replicas, runPolicy=policy)], A100)
        assert not found.jobs
        replicas["Worker"]["replicas"] = 1
        assert "was in queue q" in said(translate([pytorch(pytorchReplicaSpecs=replicas, runPolicy=policy)], A100))

    def test_replicas_without_containers_are_named(self) -> None:
        with pytest.raises(ValueError, match=r"PyTorchJob p: spec\.pytorchReplicaSpecs\.Worker\.template: must have"):
            translate([pytorch(pytorchReplicaSpecs={"Worker": {"template": {"spec": {}}}})], A100)
