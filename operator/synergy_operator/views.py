"""What the operator reads of TrainingJobs, pods and batch Jobs: small frozen copies of the API server's JSON."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from pydantic import ValidationError

from synergy_api import names
from synergy_api.pods import TERMINAL_PHASES, amounts_of, sidecar_requests
from synergy_api.timestamps import parse_time
from synergy_api.training_job import TrainingJobSpec, TrainingJobStatus
from synergy_operator.resize_view import ResizeView, read_resize

Object = Mapping[str, Any]

ANNOTATION_UNGATED_AT: Final = f"{names.GROUP}/ungated-at"
"""When the pod's gate fell: from then on a gang has a limited time to be bound."""
ANNOTATION_JOB_UID: Final = f"{names.GROUP}/job-uid"
"""On profile pods, whose controller is a batch Job: the TrainingJob's uid."""
ANNOTATION_POINT: Final = f"{names.GROUP}/cpu-millis"
"""On profile Jobs: the CPU point that is measured."""
ANNOTATION_HIT_RATE: Final = f"{names.GROUP}/hit-rate"
"""On profile Jobs that check the memory model: the fraction of the data that counts as cached."""
ANNOTATION_STORAGE: Final = f"{names.GROUP}/storage-bytes-per-s"
"""On profile Jobs: what their reads from storage are held to, where they are."""
ANNOTATION_REPEAT: Final = f"{names.GROUP}/repeat"
"""On profile Jobs: how often their point had been measured before."""
ANNOTATION_FINGERPRINT: Final = f"{names.GROUP}/fingerprint"
"""On profile Jobs: the fingerprint of the spec that they measure."""

MOST_OBJECT_BYTES: Final = 1 << 20
"""Of a TrainingJob as JSON. The API server keeps about 1.5 MB, in which the status has to grow."""
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}$")
_LABEL_BATCH_JOB: Final = "batch.kubernetes.io/job-name"


@dataclass(frozen=True, slots=True)
class JobView:
    """A TrainingJob. `spec` is None when it does not parse; `spec_error` then names the field."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    created_at: float
    deleting: bool
    spec: TrainingJobSpec | None
    spec_error: str
    status: TrainingJobStatus
    too_large: bool = False
    """The whole object leaves hardly any room for its status."""

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return self.namespace, self.name


def only_progress(before: JobView | None, after: JobView) -> bool:
    """Whether all that has changed is what rank 0 reports while it trains: nothing follows from that by itself. What is
    learned from reports stands in other fields too, or is read when a run ends."""
    if before is None or before.uid != after.uid:
        return False
    status = before.status.model_copy(update={"progress": after.status.progress})
    return replace(before, resource_version=after.resource_version, status=status) == after


@dataclass(frozen=True, slots=True)
class ContainerView:
    """The state of a pod's first container: what waits says why, what ended says how."""

    waiting_reason: str = ""
    waiting_message: str = ""
    started_at: float | None = None
    finished_at: float | None = None
    exit_code: int | None = None
    reason: str = ""
    message: str = ""

    @property
    def running(self) -> bool:
        """Started and not ended."""
        return self.started_at is not None and self.exit_code is None


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod of a TrainingJob. `run` and `rank` are -1 where the label is no number; `owner` is the TrainingJob's uid.

    `cpu_millis` and `memory_bytes` are what the first container, `container`, requests, `beside_*` what the others do.
    `image_digest` is of the first container's image, `resize` is what that really has. `stuck` says why a container
    cannot start, `init_failure` which init container failed; both are empty where all is well.
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
    cpu_millis: int
    memory_bytes: int
    beside_cpu_millis: int
    beside_memory_bytes: int
    batch_job: str

    @property
    def terminal(self) -> bool:
        """All containers have ended for good: the pod holds nothing any more."""
        return self.phase in TERMINAL_PHASES

    @property
    def deleting(self) -> bool:
        """Somebody deleted it; its containers may still run."""
        return self.deleting_until is not None

    @property
    def gated(self) -> bool:
        """It carries our gate still."""
        return names.GATE in self.gates


@dataclass(frozen=True, slots=True)
class Target:
    """What one profile run measures: the CPU, all data in memory; with `hit_rate` that fraction of it, the rest read
    from storage, at most at `storage_bytes_per_s`. `repeat` counts the runs of the same point before."""

    cpu_millis: int
    hit_rate: float | None = None
    storage_bytes_per_s: int | None = None
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class BatchJobView:
    """A batch/v1 Job that measures one point."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    owner: str
    job: str
    run: int
    target: Target
    fingerprint: str
    created_at: float
    deleting: bool
    failed_reason: str
    failed_message: str
    complete: bool

    @property
    def point(self) -> int:
        """Its CPU in milli-CPU; -1 where it does not say."""
        return self.target.cpu_millis

    @property
    def finished(self) -> bool:
        """It runs no more pods."""
        return self.complete or bool(self.failed_reason)


def read_job(item: Object) -> JobView:
    """A TrainingJob from its JSON.

    Raises ValueError if the status does not parse: only the operator and the extender write it.
    """
    metadata = item["metadata"]
    spec, problem = _read_spec(item.get("spec") or {})
    try:
        status = TrainingJobStatus.model_validate(item.get("status") or {})
    except ValidationError as error:
        raise ValueError(f"status of TrainingJob {metadata['namespace']}/{metadata['name']}: {error}") from error
    return JobView(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=metadata.get("generation", 0),
        created_at=parse_time(metadata["creationTimestamp"]),
        deleting="deletionTimestamp" in metadata,
        spec=spec,
        spec_error=problem,
        status=status,
        too_large=len(msgspec.json.encode(item)) > MOST_OBJECT_BYTES,
    )


def read_pod(item: Object) -> PodView:
    """A pod with our label from its JSON."""
    metadata, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    first = spec["containers"][0]
    conditions = {c["type"]: c for c in status.get("conditions") or []}
    requests = amounts_of((first.get("resources") or {}).get("requests") or {})
    beside = sidecar_requests(spec)
    return PodView(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        owner=annotations.get(ANNOTATION_JOB_UID) or _controller(metadata),
        job=labels.get(names.LABEL_JOB, ""),
        run=_number(labels.get(names.LABEL_RUN)),
        rank=_number(labels.get(names.LABEL_RANK)),
        role=labels.get(names.LABEL_ROLE, ""),
        node=spec.get("nodeName") or "",
        planned_node=annotations.get(names.ANNOTATION_PLANNED_NODE, ""),
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or []),
        created_at=parse_time(metadata["creationTimestamp"]),
        deleting_until=_time(metadata.get("deletionTimestamp")),
        phase=status.get("phase") or "Pending",
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        unschedulable=_unschedulable(conditions),
        disruption=_true(conditions, "DisruptionTarget", "reason"),
        resize=read_resize(item),
        ungated_at=_time(annotations.get(ANNOTATION_UNGATED_AT)),
        bound_at=_bound_at(conditions),
        stuck=_stuck(status),
        init_failure=_init_failure(status.get("initContainerStatuses") or []),
        container=first["name"],
        image_digest=_image_digest(first["name"], status.get("containerStatuses") or []),
        main=_container(first["name"], status.get("containerStatuses") or []),
        gpus=requests.gpus,
        cpu_millis=requests.cpu_millis,
        memory_bytes=requests.memory_bytes,
        beside_cpu_millis=beside.cpu_millis,
        beside_memory_bytes=beside.memory_bytes,
        batch_job=labels.get(_LABEL_BATCH_JOB, ""),
    )


def read_batch_job(item: Object) -> BatchJobView:
    """A batch/v1 Job with our label from its JSON."""
    metadata, status = item["metadata"], item.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    true = {c["type"]: c for c in status.get("conditions") or [] if c.get("status") == "True"}
    failed = true.get("Failed", {})
    return BatchJobView(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        owner=_controller(metadata),
        job=labels.get(names.LABEL_JOB, ""),
        run=_number(labels.get(names.LABEL_RUN)),
        target=_target(annotations),
        fingerprint=annotations.get(ANNOTATION_FINGERPRINT, ""),
        created_at=parse_time(metadata["creationTimestamp"]),
        deleting="deletionTimestamp" in metadata,
        failed_reason=(failed.get("reason") or "Failed") if failed else "",
        failed_message=failed.get("message") or "",
        complete="Complete" in true,
    )


def _target(annotations: Object) -> Target:
    hit_rate, storage = annotations.get(ANNOTATION_HIT_RATE), annotations.get(ANNOTATION_STORAGE)
    try:
        counts_as = None if hit_rate is None else float(hit_rate)
    except ValueError:
        counts_as = None
    return Target(
        _number(annotations.get(ANNOTATION_POINT)),
        counts_as,
        None if storage is None else _number(storage),
        max(0, _number(annotations.get(ANNOTATION_REPEAT))),
    )


def _read_spec(spec: Object) -> tuple[TrainingJobSpec | None, str]:
    try:
        return TrainingJobSpec.model_validate(spec), ""
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in ("spec", *first["loc"]))
        return None, f"{field}: {first['msg']}"


def _image_digest(name: str, statuses: Sequence[Object]) -> str:
    """The digest that the runtime knows the container's image by, empty where it does not say."""
    image = next((str(item.get("imageID") or "") for item in statuses if item["name"] == name), "")
    found = _DIGEST.search(image)
    return found[0] if found else ""


def _container(name: str, statuses: Sequence[Object]) -> ContainerView:
    state: Object = next((s.get("state") or {} for s in statuses if s.get("name") == name), {})
    if "terminated" in state:
        ended = state["terminated"]
        return ContainerView(
            started_at=_time(ended.get("startedAt")) or None,  # a container that never started has the epoch here
            finished_at=_time(ended.get("finishedAt")),
            exit_code=ended.get("exitCode", 0),
            reason=ended.get("reason") or "",
            message=ended.get("message") or "",
        )
    if "running" in state:
        return ContainerView(started_at=_time(state["running"].get("startedAt")))
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
    return _time(scheduled.get("lastTransitionTime")) if scheduled.get("status") == "True" else None


def _unschedulable(conditions: Mapping[str, Object]) -> str:
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False" and scheduled.get("reason") != "SchedulingGated":
        return scheduled.get("message") or scheduled.get("reason") or "not schedulable"
    return ""


def _true(conditions: Mapping[str, Object], kind: str, field: str) -> str:
    condition = conditions.get(kind) or {}
    return str(condition.get(field) or kind) if condition.get("status") == "True" else ""


def _controller(metadata: Object) -> str:
    owners = metadata.get("ownerReferences") or []
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else -1


def _time(text: str | None) -> float | None:
    return parse_time(text) if text else None
