"""How long a run may take to leave once its lease is over. The operator waits so long, the extender counts on it."""

from typing import Any, Final

from synergy_api.resources.training_job import TrainingJobSpec, TrainingJobStatus

LEAST_SECONDS: Final = 30.0
"""What a worker with the library has at the least to checkpoint before its pod is deleted."""
SAFETY_FACTOR: Final = 2.0
"""A checkpoint may take so many times as long as the last one did: storage is shared."""
_GRACE_SECONDS: Final = 30.0
"""Kubernetes' default for terminationGracePeriodSeconds."""


def leave_seconds(spec: TrainingJobSpec, status: TrainingJobStatus, most: float) -> float:
    """Seconds between the end of the lease and the deletion of the pods that have not left.

    A job with preemption Checkpoint gets twice the time that its newest checkpoint took, `most` seconds at the most,
    less its grace period, which follows the deletion; and never less than 30 s. Others get nothing: they leave on the
    SIGTERM of the deletion.
    """
    if spec.preemption != "Checkpoint":
        return 0.0
    if spec.throughput is not None:  # it does not use the library
        return LEAST_SECONDS
    wanted = min(SAFETY_FACTOR * _saved_seconds(status), most)
    return max(LEAST_SECONDS, wanted - _grace_seconds(spec.template))


def _saved_seconds(status: TrainingJobStatus) -> float:
    """How long the newest checkpoint took, as rank 0 reported or wrote on leaving; of one that was cut off, how long it
    was waited for."""
    last, progress = status.service.last if status.service is not None else None, status.progress
    if last is not None and last.save_seconds is not None and (progress is None or progress.run <= last.run):
        return last.save_seconds
    return (progress.save_seconds if progress is not None else None) or 0.0


def _grace_seconds(template: dict[str, Any]) -> float:
    spec = template.get("spec")
    seconds = spec.get("terminationGracePeriodSeconds") if isinstance(spec, dict) else None
    return float(seconds) if isinstance(seconds, int) and seconds >= 0 else _GRACE_SECONDS
