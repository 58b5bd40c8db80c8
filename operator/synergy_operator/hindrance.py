"""What keeps a worker from starting: told from the pod, in the words of kube-scheduler or the kubelet."""

from typing import Final

from synergy_api.reasons import Finding, Reason, say
from synergy_operator.views import PodView

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
_CLAIM: Final = "persistentvolumeclaim"
"""In each of kube-scheduler's complaints about volumes that do not exist or cannot be bound."""


def hindrance(pod: PodView, run: int) -> Finding | None:
    """Why the pod does not start; None while nothing is wrong with it."""
    facts = {"run": run, "rank": max(pod.rank, 0), "problem": pod.stuck or pod.unschedulable, "pod": pod.name}
    word = pod.stuck.partition(":")[0]
    if word in _IMAGE:
        return say(Reason.IMAGE_NOT_PULLED, **facts)
    if word in _CONTAINER:
        return say(Reason.CONTAINER_NOT_CREATED, **facts)
    if not word and _CLAIM in pod.unschedulable.lower():
        return say(Reason.VOLUME_NOT_MOUNTED, **facts)
    return say(Reason.WORKER_WAITING, **facts) if facts["problem"] else None
