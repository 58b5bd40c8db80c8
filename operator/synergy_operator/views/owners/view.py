"""A managed object, as the operator reads it."""

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

from synergy_api import names
from synergy_api.amounts import DIMENSIONS, NOTHING, Amounts
from synergy_api.cluster.pods import pod_requests
from synergy_operator.views.metadata import Object
from synergy_operator.views.owners.kinds import KINDS, Kind, Marks, PodSet

_FROM_CONTROLLERS: Final = ("batch.kubernetes.io/", "controller-uid", "job-name")
_HASH: Final = 8
_KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"


@dataclass(frozen=True, slots=True)
class OwnerView:
    """A managed object.

    - `suspended` is what its spec says, `active` whether its controller may still have pods.
    - `workers` are pods with GPUs that it has at once, `expected` those that it will make now.
    - `problem` says why it cannot be managed, empty if it can.
    - `marked_spec` is the spec with the marks in its templates; None if they are there.
    - `template` is the pod template of its workers without the marks, `requests` what one of them asks for.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    deleting: bool
    suspended: bool
    active: bool
    succeeded: bool
    failed: bool
    message: str
    preemptible: bool
    shown: str
    problem: str
    workers: int = 0
    expected: int = 0
    requests: Amounts = NOTHING
    template: Object = field(default_factory=dict, repr=False)
    marked_spec: Object | None = field(default=None, repr=False)

    @property
    def finished(self) -> bool:
        """It makes no more pods."""
        return self.succeeded or self.failed

    @property
    def job(self) -> str:
        """The name of its TrainingJob."""
        return job_name(self.kind, self.name)

    @property
    def full_name(self) -> str:
        """For people."""
        return f"{self.kind} {self.name}"


def job_name(kind: str, name: str) -> str:
    """The TrainingJob of a managed object. A name that is too long or has a dot ends with a hash of it instead."""
    plain = f"{kind.lower()}-{name}"
    if len(plain) <= names.MAX_JOB_NAME and "." not in plain:
        return plain
    digest = hashlib.sha256(plain.encode()).hexdigest()[:_HASH]
    return f"{plain.replace('.', '-')[: names.MAX_JOB_NAME - _HASH - 1]}-{digest}"


def read_owner(kind: Kind, item: Object) -> OwnerView:
    """The view of an object of this kind. What of its spec cannot be read is its `problem`."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    annotations = metadata.get("annotations") or {}
    true = {c["type"]: c for c in status.get("conditions") or [] if c.get("status") == "True"}
    ended = true.get(kind.failed) or true.get(kind.succeeded) or {}
    facts: dict[str, Any] = {
        "kind": kind.name,
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resource_version": metadata["resourceVersion"],
        "deleting": "deletionTimestamp" in metadata,
        "suspended": _suspended(kind, spec),
        "active": _is_active(status, true),
        "succeeded": kind.succeeded in true,
        "failed": kind.failed in true,
        "message": str(ended.get("message") or ""),
        "preemptible": annotations.get(names.ANNOTATION_PREEMPTIBLE) == "true",
        "shown": str(annotations.get(names.ANNOTATION_STATUS, "")),
    }
    try:
        return OwnerView(problem="", **facts, **_workers(kind, metadata, spec, status))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = str(error) if isinstance(error, ValueError) else f"its pod template cannot be read: {error!r}"
        return OwnerView(problem=problem, **facts)


def _is_active(status: Object, true: Object) -> bool:
    """Whether its controller reports pods, or has not yet noted that it is suspended: until then it may make more."""
    parts = [status, *(status.get("replicatedJobsStatus") or []), *(status.get("jobsStatus") or [])]
    parts += (status.get("replicaStatuses") or {}).values()
    return "Suspended" not in true or any(part.get("active") for part in parts)


def _suspended(kind: Kind, spec: Object) -> bool:
    return _beside_suspend(kind, spec, kind.suspended[-1]) is True


def _beside_suspend(kind: Kind, spec: Object, field: str) -> Any:
    """A field of the part of the spec that has `suspend`; None where it is not set."""
    value: Any = spec
    for part in (*kind.suspended[:-1], field):
        value = (value or {}).get(part) if isinstance(value, dict) else None
    return value


def _workers(kind: Kind, metadata: Object, spec: Object, status: Object) -> dict[str, Any]:
    """The fields of a view that follow from its pods with GPUs. Raises ValueError if they cannot be planned."""
    if _KUEUE_QUEUE in (metadata.get("labels") or {}):
        raise ValueError(f"it has the label {_KUEUE_QUEUE} too, and only one of both may suspend and resume it")
    manager = _beside_suspend(kind, spec, "managedBy")
    if manager not in (None, "", kind.controller):
        raise ValueError(f"its own controller leaves it to {manager} (managedBy)")
    sets = [pods for pods in kind.pod_sets(spec) if pods.count > 0 and _requests(pods.template).gpus > 0]
    if not sets:
        raise ValueError(f"none of its pods asks for {names.RESOURCE_GPU}")
    each = [_requests(pods.template) for pods in sets]
    if len({amounts.gpus for amounts in each}) > 1:
        raise ValueError("its pods ask for different numbers of GPUs: all workers of a job have the same")
    largest = Amounts(each[0].gpus, *(max(getattr(one, d.field) for one in each) for d in DIMENSIONS))
    marks = Marks(
        {names.LABEL_JOB: job_name(kind.name, metadata["name"]), names.LABEL_ROLE: names.ROLE_WORKER},
        {names.ANNOTATION_OWNER_UID: metadata["uid"]},
    )
    count = sum(pods.count for pods in sets)
    marked = all(_is_marked(pods, marks) for pods in sets)
    return {
        "workers": count,
        "expected": min(count, _left(kind, spec, status, count)),
        "requests": largest,
        "template": _own_template(sets[0].template),
        "marked_spec": None if marked else kind.marked(spec, marks, lambda template: _requests(template).gpus > 0),
    }


def _left(kind: Kind, spec: Object, status: Object, count: int) -> int:
    """Pods that a Job still has to complete; of other kinds all."""
    if kind is not KINDS["Job"] or spec.get("completions") is None:
        return count
    return max(1, int(spec["completions"]) - int(status.get("succeeded") or 0))


def _requests(template: Object) -> Amounts:
    """What a pod of the template asks for. Where a container gives only limits, Kubernetes takes them as requests.

    Raises ValueError for an amount that does not parse.
    """
    spec = template.get("spec") or {}

    def asked(container: Object) -> Object:
        resources = container.get("resources") or {}
        return {
            **container,
            "resources": {"requests": {**(resources.get("limits") or {}), **(resources.get("requests") or {})}},
        }

    parts = {part: [asked(one) for one in spec.get(part) or []] for part in ("containers", "initContainers")}
    return pod_requests({"spec": {**spec, **parts}})


def _is_marked(pods: PodSet, marks: Marks) -> bool:
    metadata, spec = pods.template.get("metadata") or {}, pods.template.get("spec") or {}
    return (
        marks.labels.items() <= (metadata.get("labels") or {}).items()
        and marks.annotations.items() <= (metadata.get("annotations") or {}).items()
        and names.GATE in [gate.get("name") for gate in spec.get("schedulingGates") or []]
    )


def _own_template(template: Object) -> Object:
    """The template as its user wrote it."""
    metadata = template.get("metadata") or {}
    kept: dict[str, Any] = {}
    for part in ("labels", "annotations"):
        words = {
            key: value
            for key, value in (metadata.get(part) or {}).items()
            if not key.startswith((f"{names.GROUP}/", *_FROM_CONTROLLERS))
        }
        if words:
            kept[part] = words
    spec = {key: value for key, value in (template.get("spec") or {}).items() if key != "schedulingGates"}
    return {**({"metadata": kept} if kept else {}), "spec": spec}
