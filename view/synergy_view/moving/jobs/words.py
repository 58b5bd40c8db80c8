"""What all translations of jobs share: how a job names its queue, and what of its metadata is left."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from synergy_api.names import API_VERSION, MAX_JOB_NAME
from synergy_view.moving.words import Object, Remark

KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
KUEUE_PRIORITY: Final = "kueue.x-k8s.io/priority-class"
KAI_QUEUES: Final = ("kai.scheduler/queue", "runai/queue")
VOLCANO_QUEUES: Final = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")
_PRIORITY: Final = "priorityClassName"
"""The label of KAI that names a job's PriorityClass."""
_OF_OTHERS: Final = (
    "kueue.x-k8s.io/", "kai.scheduler/", "runai/", "volcano.sh/", "scheduling.volcano.sh/", "batch.kubernetes.io/",
    "training.kubeflow.org/", "kubectl.kubernetes.io/", "scheduling.k8s.io/", "pod-group-name",
)  # fmt: skip
_OF_CONTROLLERS: Final = frozenset({"controller-uid", "job-name", _PRIORITY, "gpu-fraction", "gpu-memory"})


@dataclass(frozen=True)
class Workers:
    """Equal workers of one job: how many, and the field of the source with their template."""

    count: int
    template: Mapping[str, Any]
    path: str


@dataclass
class JobDraft:
    """A TrainingJob that is being made of one object."""

    source: str
    metadata: Object
    spec: dict[str, Any] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    queue: str = ""
    """The queue that the job names: Kueue's LocalQueue, the Queue of the others. Empty if it names none."""

    @property
    def namespace(self) -> str:
        """The job's namespace."""
        return str(self.metadata.get("namespace", "default"))

    @property
    def name(self) -> str:
        """The name; that of a job without one begins as its generated names do."""
        return str(self.metadata.get("name") or str(self.metadata.get("generateName", "")).rstrip("-"))

    def remark(self, path: str, message: str) -> None:
        """Say something of a field of the source."""
        self.remarks.append(Remark(self.source, path, message))

    def number(self, value: Any, path: str, default: int) -> int:
        """A whole number from a field. Raises ValueError if it is none."""
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{self.source}: {path}: {value!r} is no whole number")
        return value

    def manifest(self) -> Object:
        """The TrainingJob."""
        metadata: Object = {"name": self.name}
        if self.metadata.get("namespace"):
            metadata["namespace"] = self.namespace
        for part in ("labels", "annotations"):
            kept = own_words(self.metadata.get(part) or {})
            if kept:
                metadata[part] = kept
        return {"apiVersion": API_VERSION, "kind": "TrainingJob", "metadata": metadata, "spec": self.spec}

    def name_problem(self) -> str:
        """Why no TrainingJob can have the name; empty if one can."""
        if len(self.name) > MAX_JOB_NAME:
            return f"a TrainingJob's name has {MAX_JOB_NAME} characters at the most: rename it"
        return "a TrainingJob's name has no dot: rename it" if "." in self.name else ""


def own_words(given: Mapping[str, Any]) -> dict[str, Any]:
    """Labels or annotations without those that schedulers and controllers gave."""
    return {key: value for key, value in given.items() if not key.startswith(_OF_OTHERS) and key not in _OF_CONTROLLERS}


def queue_of(draft: JobDraft, *names: str) -> str:
    """The queue that the job's labels or annotations name; the first of `names` that is there."""
    given = {**(draft.metadata.get("annotations") or {}), **(draft.metadata.get("labels") or {})}
    return next((str(given[name]) for name in names if given.get(name)), "")


def set_priority(draft: JobDraft, *, given: Any = None, path: str = "") -> None:
    """The PriorityClass: the one that a field names, else that of a label."""
    labels = draft.metadata.get("labels") or {}
    name = given or labels.get(_PRIORITY)
    if name:
        draft.spec["priorityClassName"] = str(name)
        draft.remark(path or "metadata.labels", f"priority: spec.priorityClassName {name} counts up to the Tenant's "
                     "caps.maxPriority, 0 by default")  # fmt: skip
    if KUEUE_PRIORITY in labels:
        draft.spec["priorityClassName"] = str(labels[KUEUE_PRIORITY])
        draft.remark("metadata.labels", f"spec.priorityClassName is a PriorityClass: make {labels[KUEUE_PRIORITY]} "
                     "with the value of the WorkloadPriorityClass")  # fmt: skip
