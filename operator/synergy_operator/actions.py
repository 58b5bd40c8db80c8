"""What a reconcile wants done: plain data, carried out in order by the executor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from synergy_api.reasons import EventKind, Reason
from synergy_api.training_job import TrainingJobStatus

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ApplyStatus:
    """Write the operator's whole part of the status. It is refused if the job changed since it was observed, so that no
    decision rests on what is no longer so."""

    status: TrainingJobStatus


@dataclass(frozen=True, slots=True)
class PostEvent:
    """Tell the user, in `kubectl describe`."""

    kind: EventKind
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class ReadWarning:
    """The newest warning event of a pod or Job that does not get on: what it complains of is known at the next look."""

    kind: Literal["Pod", "Job"]
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ConfirmUnbound:
    """Ask the API server whether the pod is unbound still. If it is not, nothing of what follows is done: the watch was
    late, and the next look knows better."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class EnsureService:
    """The job's headless Service is there."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class EnsureGangKey:
    """The Secret with the key of the job's gangs is there. The executor draws the key when it makes the Secret; nobody
    reads it back."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class CreatePod:
    """One worker pod of a run. Its name is its identity: one that exists already is left as it is."""

    run: int
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class UngatePod:
    """Our gate falls; `gates` are what is left."""

    name: str
    uid: str
    gates: tuple[str, ...]
    at: float


@dataclass(frozen=True, slots=True)
class ResizePod:
    """CPU and memory of the first container, in place."""

    name: str
    uid: str
    container: str
    cpu_millis: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class DeletePod:
    """By the template's own grace period, or at once with `grace_seconds` 0 (only where nobody is left to ask)."""

    name: str
    uid: str
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class CreateJob:
    """The batch/v1 Job of one CPU point."""

    run: int
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """A batch/v1 Job with its pods."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PublishProfile:
    """The ThroughputProfile of a finished series, for identical jobs to use. `version` is that of the one it rests on,
    empty if there was none: it is refused if another job has published since."""

    name: str
    spec: Manifest
    version: str = ""


@dataclass(frozen=True, slots=True)
class DeleteTrainingJob:
    """The job's time after its end is over."""


Action = (
    ApplyStatus
    | PostEvent
    | ReadWarning
    | ConfirmUnbound
    | EnsureService
    | EnsureGangKey
    | CreatePod
    | UngatePod
    | ResizePod
    | DeletePod
    | CreateJob
    | DeleteJob
    | PublishProfile
    | DeleteTrainingJob
)


@dataclass(frozen=True, slots=True)
class Actions:
    """The outcome of one reconcile: what to do, in this order, and when to look again at the latest (seconds)."""

    todo: tuple[Action, ...] = ()
    look_again_in: float | None = None
