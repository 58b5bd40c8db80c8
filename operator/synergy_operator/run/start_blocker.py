"""What keeps a worker from starting, from the pod itself or, if the pod shows nothing, from the kubelet's events."""

from typing import Final

from synergy_api.reasons import Finding, Reason, say
from synergy_operator.actions import ReadWarning
from synergy_operator.views.batch_job import BatchJobView
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView
from synergy_operator.views.pod_events import PodWarning

QUIET_SECONDS: Final = 10.0
"""How long a bound pod may lack its containers, or a profile Job its pod, before the operator reads its events."""
READ_AGAIN_SECONDS: Final = 20.0

_IMAGE: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
_CONTAINER: Final = frozenset({"CreateContainerConfigError", "CreateContainerError", "PreCreateHookError"})
_MOUNT: Final = frozenset({"FailedMount", "FailedMapVolume"})
_VOLUME: Final = _MOUNT | {"FailedAttachVolume"}
_ATTACHING: Final = "Unable to attach or mount volumes"
_CLAIM: Final = "persistentvolumeclaim"
"""Part of each of kube-scheduler's messages about volumes that do not exist or cannot be bound."""
_NOT_MADE: Final = "FailedCreate"
"""The Job controller's reason for a pod that the API server refused."""


def start_blocker(pod: PodView, observed: Observed) -> Finding | None:
    """Why the pod does not start; None if nothing is known to be wrong."""
    warning = _warning(pod, observed)
    problem = pod.stuck or pod.unschedulable or (f"{warning.reason}: {warning.message}" if warning is not None else "")
    facts = {"run": pod.run, "rank": max(pod.rank, 0), "problem": problem, "pod": pod.name}
    word = pod.stuck.partition(":")[0] or (warning.reason if warning is not None else "")
    if word in _IMAGE:
        return say(Reason.IMAGE_NOT_PULLED, **facts)
    if word in _CONTAINER:
        return say(Reason.CONTAINER_NOT_CREATED, **facts)
    if word in _VOLUME or (not word and _CLAIM in pod.unschedulable.lower()):
        return say(Reason.VOLUME_NOT_MOUNTED, **facts)
    return say(Reason.WORKER_WAITING, **facts) if problem else None


def cannot_start(pod: PodView, observed: Observed) -> Finding | None:
    """Why the bound pod cannot start without a change by somebody.

    None if it may start later, for example when another node detaches its volume.
    """
    warning = _warning(pod, observed)
    no_mount = warning is not None and warning.reason in _MOUNT and not warning.message.startswith(_ATTACHING)
    return start_blocker(pod, observed) if pod.node and (pod.stuck or no_mount) else None


def warning_reads(
    pod: PodView, since: float, observed: Observed, now: float
) -> tuple[tuple[ReadWarning, ...], float | None]:
    """The action that reads a bound pod's warnings, and the seconds until the next read.

    Only pods without containers are of interest. `since` is when the pod could begin to start (Unix seconds).
    """
    if not _unexplained(pod):
        return (), None
    return _ask(ReadWarning(pod.name, pod.uid), since, observed, now)


def warning_reads_of_job(
    job: BatchJobView, observed: Observed, now: float
) -> tuple[tuple[ReadWarning, ...], float | None]:
    """The action that reads the warnings of a profile Job without a pod, and the seconds until the next read."""
    return _ask(ReadWarning(job.name, job.uid), job.created_at, observed, now)


def refused_pod_message(job: BatchJobView, observed: Observed) -> str:
    """Why the API server refused a profile Job's pod, in its own words; empty if that is not known."""
    warning = observed.pod_events.warnings.get(job.uid)
    return warning.message if warning is not None and warning.reason == _NOT_MADE else ""


def _unexplained(pod: PodView) -> bool:
    """The bound pod has no containers yet, and its status does not say why."""
    return bool(pod.node) and not pod.terminal and not pod.deleting and pod.main.started_at is None and not pod.stuck


def _warning(pod: PodView, observed: Observed) -> PodWarning | None:
    warning = observed.pod_events.warnings.get(pod.uid)
    return warning if warning is not None and warning.reason and _unexplained(pod) else None


def _ask(
    question: ReadWarning, since: float, observed: Observed, now: float
) -> tuple[tuple[ReadWarning, ...], float | None]:
    warning = observed.pod_events.warnings.get(question.uid)
    wait = since + QUIET_SECONDS - now if warning is None else warning.read_at + READ_AGAIN_SECONDS - now
    return ((question,), None) if wait <= 0 else ((), wait)
