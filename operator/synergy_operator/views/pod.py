"""Pods of TrainingJobs, as the operator reads them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from synergy_api import names
from synergy_api.amounts import Amounts
from synergy_api.cluster.pods import TERMINAL_PHASES, sidecar_requests
from synergy_api.devices import device_class, is_extended
from synergy_api.timestamps import parse_time
from synergy_operator.views.annotations import ANNOTATION_UNGATED_AT
from synergy_operator.views.metadata import Object, controller_uid, number_of, time_of
from synergy_operator.views.resize import ResizeView, read_resize

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}$")
_LABEL_BATCH_JOB: Final = "batch.kubernetes.io/job-name"


@dataclass(frozen=True, slots=True)
class ContainerView:
    """The state of a pod's first container: why it waits, since when it runs, or how it ended."""

    waiting_reason: str = ""
    waiting_message: str = ""
    started_at: float | None = None
    finished_at: float | None = None
    exit_code: int | None = None
    reason: str = ""
    message: str = ""

    @property
    def running(self) -> bool:
        """The container has started and has not ended."""
        return self.started_at is not None and self.exit_code is None


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod of a TrainingJob.

    - `run` and `rank` are -1 if the label is not a number. `owner` is the TrainingJob's uid.
    - `grace_seconds` is the grace period of its template. A deletion may give it another one: see `deleting_until`.
    - `requests` are those of the first container, named `container`; `beside` are those of the others. Both are without
      GPUs.
    - `image_digest` belongs to the first container's image. `resize` is what that container really has.
    - `stuck` says why a container cannot start, `init_failure` which init container failed. Both are empty otherwise.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    owner: str
    job: str
    run: int
    rank: int
    role: str
    node: str
    planned_node: str
    gates: tuple[str, ...]
    created_at: float
    deleting_until: float | None
    grace_seconds: int
    phase: str
    reason: str
    message: str
    unschedulable: str
    disruption: str
    resize: ResizeView
    ungated_at: float | None
    bound_at: float | None
    stuck: str
    init_failure: str
    container: str
    image_digest: str
    main: ContainerView
    gpus: int
    requests: Amounts
    beside: Amounts
    batch_job: str
    managed_by: str = ""
    """The uid of the managed object whose pod it is; empty for pods that the operator made."""

    @property
    def amounts(self) -> Amounts:
        """What all of its containers ask for, its GPUs included."""
        return self.requests.plus(self.beside)._replace(gpus=self.gpus)

    @property
    def terminal(self) -> bool:
        """All containers have ended for good: the pod holds no resources."""
        return self.phase in TERMINAL_PHASES

    @property
    def deleting(self) -> bool:
        """The pod has been deleted. Its containers may still run."""
        return self.deleting_until is not None

    @property
    def gated(self) -> bool:
        """The pod still has the operator's scheduling gate."""
        return names.GATE in self.gates


def read_pod(item: Object) -> PodView:
    """The view of a pod that has the operator's label."""
    metadata, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    first = spec["containers"][0]
    conditions = {c["type"]: c for c in status.get("conditions") or []}
    resource = annotations.get(names.ANNOTATION_RESOURCE)
    requests = Amounts.parse(
        (first.get("resources") or {}).get("requests") or {},
        (resource,) if resource and is_extended(resource) else names.GPU_RESOURCES,
    )
    if resource and device_class(resource) is not None:
        requests = requests._replace(gpus=number_of(annotations.get(names.ANNOTATION_DEVICES)))
    return PodView(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        owner=annotations.get(names.ANNOTATION_JOB_UID) or controller_uid(metadata),
        job=labels.get(names.LABEL_JOB, ""),
        run=number_of(labels.get(names.LABEL_RUN)),
        rank=number_of(labels.get(names.LABEL_RANK)),
        role=labels.get(names.LABEL_ROLE, ""),
        node=spec.get("nodeName") or "",
        planned_node=annotations.get(names.ANNOTATION_PLANNED_NODE, ""),
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or []),
        created_at=parse_time(metadata["creationTimestamp"]),
        deleting_until=time_of(metadata.get("deletionTimestamp")),
        grace_seconds=spec.get("terminationGracePeriodSeconds") or 0,
        phase=status.get("phase") or "Pending",
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        unschedulable=_unschedulable(conditions),
        disruption=_true(conditions, "DisruptionTarget", "reason"),
        resize=read_resize(item),
        ungated_at=_ungated_at(annotations),
        bound_at=_bound_at(conditions),
        stuck=_stuck(status),
        init_failure=_init_failure(status.get("initContainerStatuses") or []),
        container=first["name"],
        image_digest=_image_digest(first["name"], status.get("containerStatuses") or []),
        main=_container(first["name"], status.get("containerStatuses") or []),
        gpus=requests.gpus,
        requests=requests.without_gpus(),
        beside=sidecar_requests(spec).without_gpus(),
        batch_job=labels.get(_LABEL_BATCH_JOB, ""),
        managed_by=annotations.get(names.ANNOTATION_OWNER_UID, ""),
    )


def _ungated_at(annotations: Object) -> float | None:
    """A user may have edited the annotation: a text that is no time counts as missing."""
    try:
        return time_of(annotations.get(ANNOTATION_UNGATED_AT))
    except ValueError:
        return None


def _image_digest(name: str, statuses: Sequence[Object]) -> str:
    """The digest by which the container runtime knows the image; empty if it reports none."""
    image = next((str(item.get("imageID") or "") for item in statuses if item["name"] == name), "")
    found = _DIGEST.search(image)
    return found[0] if found else ""


def _container(name: str, statuses: Sequence[Object]) -> ContainerView:
    state: Object = next((s.get("state") or {} for s in statuses if s.get("name") == name), {})
    if "terminated" in state:
        ended = state["terminated"]
        return ContainerView(
            started_at=time_of(ended.get("startedAt")) or None,  # the epoch if the container never started
            finished_at=time_of(ended.get("finishedAt")),
            exit_code=ended.get("exitCode", 0),
            reason=ended.get("reason") or "",
            message=ended.get("message") or "",
        )
    if "running" in state:
        return ContainerView(started_at=time_of(state["running"].get("startedAt")))
    waiting = state.get("waiting") or {}
    return ContainerView(waiting_reason=waiting.get("reason") or "", waiting_message=waiting.get("message") or "")


def _stuck(status: Object) -> str:
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            text = waiting.get("message") or ""
            return f"{waiting['reason']}: {text}" if text else str(waiting["reason"])
    return ""


def _init_failure(statuses: Sequence[Object]) -> str:
    for container in statuses:
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            return f"init container {container.get('name')} ended with exit code {ended['exitCode']}"
    return ""


def _bound_at(conditions: Mapping[str, Any]) -> float | None:
    scheduled = conditions.get("PodScheduled") or {}
    return time_of(scheduled.get("lastTransitionTime")) if scheduled.get("status") == "True" else None


def _unschedulable(conditions: Mapping[str, Object]) -> str:
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False" and scheduled.get("reason") != "SchedulingGated":
        return scheduled.get("message") or scheduled.get("reason") or "not schedulable"
    return ""


def _true(conditions: Mapping[str, Object], kind: str, field: str) -> str:
    condition = conditions.get(kind) or {}
    return str(condition.get(field) or kind) if condition.get("status") == "True" else ""
