"""How long a TrainingJob trains: the steps that its spec gives, or that follow from what is known of its data."""

from typing import Final

from synergy_api.resources.training_job import TrainingJobSpec, TrainingJobStatus

MOST_STEPS: Final = 1 << 62
"""The most steps of a job: the API server and the planner's process take numbers of 64 bits."""


def total_steps(spec: TrainingJobSpec, status: TrainingJobStatus) -> int | None:
    """Steps of the whole job; None if it ends by time, if nobody knows the steps of an epoch yet, or if another
    controller says when it ends."""
    if spec.managed is not None:
        return None
    if spec.steps is not None or spec.epochs is None:
        return spec.steps
    each = epoch_steps(status)
    return None if each is None else min(MOST_STEPS, spec.epochs * each)


def epoch_steps(status: TrainingJobStatus) -> int | None:
    """Steps of an epoch: as the job itself counts them, else as its profile runs did."""
    points = status.profile.points if status.profile is not None else ()
    told = (one.epoch_steps for one in (status.progress, *points) if one is not None)
    return next((steps for steps in told if steps is not None), None)


def trained_seconds(status: TrainingJobStatus) -> float:
    """Seconds of training over all runs so far: of a run that has ended, as rank 0 left it, since what is in no
    checkpoint is not done."""
    last, progress = status.service.last if status.service is not None else None, status.progress
    if last is not None and last.trained_seconds is not None and (progress is None or progress.run <= last.run):
        return last.trained_seconds
    return progress.trained_seconds if progress is not None else 0.0


def share_done(spec: TrainingJobSpec, status: TrainingJobStatus, steps: int) -> float | None:
    """How much of the job is done after `steps` steps, from 0 to 1; None if its length is not known."""
    if spec.max_run_seconds is not None:
        return min(1.0, trained_seconds(status) / spec.max_run_seconds)
    total = total_steps(spec, status)
    return None if total is None else min(1.0, steps / total)
