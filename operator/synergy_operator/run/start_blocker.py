"""What keeps a worker from starting: told from the pod, or from the kubelet's events where the pod says nothing."""

from typing import Final

from synergy_api.reasons import Finding, Reason, say
from synergy_operator.actions import ReadWarning
from synergy_operator.views.batch_job import BatchJobView
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView
from synergy_operator.views.pod_events import PodWarning

QUIET_SECONDS: Final = 10.0
"""How long a bound pod's containers may stay away, or a profile Job's pod, before its events are asked for."""
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
"""In each of kube-scheduler's complaints about volumes that do not exist or cannot be bound."""
_NOT_MADE: Final = "FailedCreate"
"""The Job controller's word for a pod that the API server refused."""


def start_blocker(pod: PodView, observed: Observed) -> Finding | None:
    """Why the pod does not start; None while nothing is known to be wrong with it."""
    told = _warning(pod, observed)
    problem = pod.stuck or pod.unschedulable or (f"{told.word}: {told.text}" if told is not None else "")
    facts = {"run": pod.run, "rank": max(pod.rank, 0), "problem": problem, "pod": pod.name}
    word = pod.stuck.partition(":")[0] or (told.word if told is not None else "")
    if word in _IMAGE:
        return say(Reason.IMAGE_NOT_PULLED, **facts)
    if word in _CONTAINER:
        return say(Reason.CONTAINER_NOT_CREATED, **facts)
    if word in _VOLUME or (not word and _CLAIM in pod.unschedulable.lower()):
        return say(Reason.VOLUME_NOT_MOUNTED, **facts)
    return say(Reason.WORKER_WAITING, **facts) if problem else None


def cannot_start(pod: PodView, observed: Observed) -> Finding | None:
    """Why the bound pod will not start if nobody changes anything; None where it may well start later, as with a volume
    that another node has yet to let go."""
    told = _warning(pod, observed)
    no_mount = told is not None and told.word in _MOUNT and not told.text.startswith(_ATTACHING)
    return start_blocker(pod, observed) if pod.node and (pod.stuck or no_mount) else None


def warning_reads(
    pod: PodView, since: float, observed: Observed, now: float
) -> tuple[tuple[ReadWarning, ...], float | None]:
    """Whether to ask why a bound pod's containers are not there, and when to look again (seconds). `since` is when the
    pod could begin to start."""
    if not _unexplained(pod):
        return (), None
    return _ask(ReadWarning("Pod", pod.name, pod.uid), since, observed, now)


def warning_reads_of_job(
    job: BatchJobView, observed: Observed, now: float
) -> tuple[tuple[ReadWarning, ...], float | None]:
    """Whether to ask why a profile Job has no pod, and when to look again (seconds)."""
    return _ask(ReadWarning("Job", job.name, job.uid), job.created_at, observed, now)


def refused_pod_message(job: BatchJobView, observed: Observed) -> str:
    """In the API server's words, why a profile Job's pod is not made; empty where that is not known."""
    told = observed.pod_events.warnings.get(job.uid)
    return told.text if told is not None and told.word == _NOT_MADE else ""


def _unexplained(pod: PodView) -> bool:
    """Its containers are not there, and the pod itself does not say why."""
    return bool(pod.node) and not pod.terminal and not pod.deleting and pod.main.started_at is None and not pod.stuck


def _warning(pod: PodView, observed: Observed) -> PodWarning | None:
    told = observed.pod_events.warnings.get(pod.uid)
    return told if told is not None and told.word and _unexplained(pod) else None


def _ask(
    question: ReadWarning, since: float, observed: Observed, now: float
) -> tuple[tuple[ReadWarning, ...], float | None]:
    told = observed.pod_events.warnings.get(question.uid)
    wait = since + QUIET_SECONDS - now if told is None else told.read_at + READ_AGAIN_SECONDS - now
    return ((question,), None) if wait <= 0 else ((), wait)
