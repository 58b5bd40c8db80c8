"""The actions that a reconcile asks for: plain data, which the executor carries out in order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synergy_api.amounts import Amounts
from synergy_api.reasons import EventKind, Reason
from synergy_api.resources.training_job import TrainingJobStatus

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ApplyStatus:
    """Write every status field that the operator owns.

    The API server refuses the write if the job has changed since the operator read it. A decision therefore never rests
    on outdated data.
    """

    status: TrainingJobStatus


@dataclass(frozen=True, slots=True)
class PostEvent:
    """Post an event on the TrainingJob, as `kubectl describe` shows it."""

    kind: EventKind
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class ReadWarning:
    """Ask for the newest warning event of a pod or Job that makes no progress. A later reconcile sees it."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ConfirmUnbound:
    """Check with the API server that the pod is still unbound.

    If it is bound, the watch was late: the remaining actions are skipped, and the next reconcile decides anew.
    """

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class EnsureService:
    """Create the job's headless Service, or correct it."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class EnsureGangKey:
    """Create the Secret that holds the key of the job's gangs, unless it exists.

    The executor draws the key at random. The operator never reads it back.
    """

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Create one worker pod of a run. A pod of this name that exists already stays as it is."""

    run: int
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class EnsureClaim:
    """Create the ResourceClaim of a pod with this name and UID, which owns it. A claim of that pod stays as it is."""

    pod: str
    uid: str
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class UngatePod:
    """Remove the operator's scheduling gate from a pod. `gates` are the gates that remain, `at` is the Unix time."""

    name: str
    uid: str
    gates: tuple[str, ...]
    at: float


@dataclass(frozen=True, slots=True)
class ResizePod:
    """Set CPU and memory of a pod's first container, in place."""

    name: str
    uid: str
    container: str
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod with its own grace period, or with `grace_seconds`.

    With `grace_seconds` 0 it is deleted at once. That is reserved for pods whose kubelet can no longer answer.
    """

    name: str
    uid: str
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class CreateJob:
    """Create the batch/v1 Job that measures one point, and the ResourceClaim of its pod, if it has one."""

    run: int
    manifest: Manifest
    claim: Manifest | None = None


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete a batch/v1 Job with its pods."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PublishProfile:
    """Write the ThroughputProfile of a finished series, for identical jobs to use.

    `version` is the resourceVersion of the profile that it replaces, empty if there was none. The write is refused if
    another job has published since.
    """

    name: str
    spec: Manifest
    version: str = ""


@dataclass(frozen=True, slots=True)
class ClaimPod:
    """Make a gated pod of a managed object a worker of a run: its labels, and the node that it is pinned to."""

    name: str
    uid: str
    run: int
    rank: int
    node: str
    job_uid: str
    node_affinity: Manifest


@dataclass(frozen=True, slots=True)
class SetSuspended:
    """Suspend or resume a managed object."""

    kind: str
    name: str
    uid: str
    suspended: bool


@dataclass(frozen=True, slots=True)
class MarkOwner:
    """Write the spec of a suspended object whose templates have the operator's labels and gate.

    The write is refused if the object has changed since `version`.
    """

    kind: str
    name: str
    uid: str
    version: str
    spec: Manifest


@dataclass(frozen=True, slots=True)
class AdoptOwner:
    """Create the TrainingJob of a managed object."""

    kind: str
    name: str
    uid: str
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class CreateMember:
    """Create a TrainingJob of an array."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class ShowOnOwner:
    """Write the annotation that tells the state of a managed object, and post an event on it."""

    kind: str
    name: str
    uid: str
    text: str
    event: EventKind
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class ChangeMember:
    """Set fields in the spec of a TrainingJob of an array."""

    name: str
    uid: str
    spec: Manifest


@dataclass(frozen=True, slots=True)
class DeleteTrainingJob:
    """Delete the TrainingJob: its time to live after its end is over."""


Action = (
    ApplyStatus
    | ClaimPod
    | SetSuspended
    | MarkOwner
    | AdoptOwner
    | ShowOnOwner
    | PostEvent
    | ReadWarning
    | ConfirmUnbound
    | EnsureService
    | EnsureGangKey
    | CreatePod
    | EnsureClaim
    | UngatePod
    | ResizePod
    | DeletePod
    | CreateJob
    | DeleteJob
    | PublishProfile
    | CreateMember
    | ChangeMember
    | DeleteTrainingJob
)


@dataclass(frozen=True, slots=True)
class Actions:
    """The result of one reconcile: actions in order, and the latest time of the next reconcile, in seconds from now."""

    todo: tuple[Action, ...] = ()
    requeue_after: float | None = None
