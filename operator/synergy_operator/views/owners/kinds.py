"""The kinds that can be managed: where each keeps its pod templates, how it is suspended, and how it says its end."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from synergy_api.names import GATE
from synergy_operator.views.metadata import Object

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodSet:
    """Equal pods of an object. `count` is how many run at once."""

    count: int
    template: Object


@dataclass(frozen=True, slots=True)
class Marks:
    """What the pods of an object get in their template: labels, annotations, and the operator's gate."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind. `succeeded` and `failed` are types of conditions. `suspended` is the path of the field; the field
    `managedBy` beside it has the value `controller` if the kind's own controller is meant.

    `pod_sets` yields the object's pods. `marked` returns its spec with the marks in each template of `wanted`, a
    function of the template.
    """

    group: str
    version: str
    plural: str
    name: str
    suspended: tuple[str, ...]
    succeeded: str
    failed: str
    controller: str
    pod_sets: Callable[[Object], Iterator[PodSet]]
    marked: Callable[[Object, Marks, Callable[[Object], bool]], Json]

    @property
    def api_version(self) -> str:
        """The value of `apiVersion`."""
        return f"{self.group}/{self.version}"


def with_marks(template: Object, marks: Marks) -> Json:
    """A pod template with the marks."""
    marked: Json = copy.deepcopy(dict(template))
    metadata = marked["metadata"] = marked.get("metadata") or {}
    metadata["labels"] = {**(metadata.get("labels") or {}), **marks.labels}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **marks.annotations}
    spec = marked["spec"] = marked.get("spec") or {}
    gates = [gate for gate in spec.get("schedulingGates") or [] if gate.get("name") != GATE]
    spec["schedulingGates"] = [*gates, {"name": GATE}]
    return marked


def _at_once(parallelism: Any, completions: Any) -> int:
    """Pods of a Job that run at once."""
    most = 1 if parallelism is None else int(parallelism)
    return most if completions is None else min(most, int(completions))


def _job_sets(spec: Object) -> Iterator[PodSet]:
    yield PodSet(_at_once(spec.get("parallelism"), spec.get("completions")), spec["template"])


def _mark_job(spec: Object, marks: Marks, wanted: Callable[[Object], bool]) -> Json:
    template = spec["template"]
    return {**spec, "template": with_marks(template, marks) if wanted(template) else template}


def _job_set_sets(spec: Object) -> Iterator[PodSet]:
    for replicated in spec.get("replicatedJobs") or []:
        job = replicated["template"]["spec"]
        times = int(replicated.get("replicas", 1))
        yield PodSet(times * _at_once(job.get("parallelism"), job.get("completions")), job["template"])


def _mark_job_set(spec: Object, marks: Marks, wanted: Callable[[Object], bool]) -> Json:
    marked: Json = copy.deepcopy(dict(spec))
    for replicated in marked.get("replicatedJobs") or []:
        job = replicated["template"]["spec"]
        replicated["template"]["spec"] = _mark_job(job, marks, wanted)
    return marked


def _pytorch_sets(spec: Object) -> Iterator[PodSet]:
    for replicas in (spec.get("pytorchReplicaSpecs") or {}).values():
        yield PodSet(int(replicas.get("replicas", 1)), replicas["template"])


def _mark_pytorch(spec: Object, marks: Marks, wanted: Callable[[Object], bool]) -> Json:
    marked: Json = copy.deepcopy(dict(spec))
    for replicas in (marked.get("pytorchReplicaSpecs") or {}).values():
        if wanted(replicas["template"]):
            replicas["template"] = with_marks(replicas["template"], marks)
    return marked


_TRAINER: Final = "node"
"""The job of a Kubeflow runtime whose pods train."""


def _train_sets(spec: Object) -> Iterator[PodSet]:
    """The trainer's nodes, as far as the TrainJob says what they ask for. The runtime's template is elsewhere."""
    trainer = spec.get("trainer") or {}
    overrides = _override(spec)
    container = {
        "name": _TRAINER,
        "image": trainer.get("image") or "",
        "command": trainer.get("command") or [],
        "resources": trainer.get("resourcesPerNode") or {},
    }
    pod = {**(overrides.get("spec") or {}), "containers": [container]}
    yield PodSet(int(trainer.get("numNodes") or 1), {"metadata": overrides.get("metadata") or {}, "spec": pod})


def _override(spec: Object) -> Object:
    found = (one for one in spec.get("podTemplateOverrides") or [] if _of_trainer(one))
    return next(found, {})


def _of_trainer(override: Object) -> bool:
    return [target.get("name") for target in override.get("targetJobs") or []] == [_TRAINER]


def _mark_train(spec: Object, marks: Marks, wanted: Callable[[Object], bool]) -> Json:
    marked: Json = copy.deepcopy(dict(spec))
    others = [one for one in marked.get("podTemplateOverrides") or [] if not _of_trainer(one)]
    own = with_marks({"targetJobs": [{"name": _TRAINER}], **_override(spec)}, marks)
    marked["podTemplateOverrides"] = [*others, own]
    return marked


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind(
            "batch", "v1", "jobs", "Job", ("suspend",), "Complete", "Failed", "kubernetes.io/job-controller",
            _job_sets, _mark_job,
        ),
        Kind(
            "jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", ("suspend",), "Completed", "Failed",
            "jobset.sigs.k8s.io/jobset-controller", _job_set_sets, _mark_job_set,
        ),
        Kind(
            "kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", ("runPolicy", "suspend"), "Succeeded", "Failed",
            "kubeflow.org/training-operator", _pytorch_sets, _mark_pytorch,
        ),
        Kind(
            "trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", ("suspend",), "Complete", "Failed",
            "trainer.kubeflow.org/trainjob-controller", _train_sets, _mark_train,
        ),
    )
}  # fmt: skip
