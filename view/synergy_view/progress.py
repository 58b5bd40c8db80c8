"""How far a running job is, in words."""

from collections.abc import Iterator

from synergy_api.length import epoch_steps, total_steps, trained_seconds
from synergy_api.parts.progress import Progress
from synergy_view.seen import SeenJob
from synergy_view.words import duration


def progress_text(job: SeenJob, progress: Progress) -> str:
    """Steps, speed, what is left and what that assumes, and the script's metrics."""
    return ", ".join(_parts(job, progress))


def metrics_text(progress: Progress | None) -> str:
    """What the script reported, such as "loss 0.31, lr 0.001"; empty if it reported nothing."""
    metrics = (progress.metrics if progress is not None else None) or {}
    return ", ".join(f"{name} {value:.4g}" for name, value in sorted(metrics.items()))


def _parts(job: SeenJob, progress: Progress) -> Iterator[str]:
    total = total_steps(job.spec, job.status)
    of_all = "" if total is None else f" of {total}"
    yield f"step {progress.steps}{of_all}{_epochs(job)}"
    yield f"{progress.steps_per_second:.3g} steps/s{_left(job, progress, total)}"
    paused = _pause_share(progress)
    if paused >= _SEEN:
        yield f"{paused:.0%} of its time in evaluations and saves"
    if progress.metrics:
        yield metrics_text(progress)


_SEEN = 0.01
"""Pauses below this share of the time are not worth a word."""


def _left(job: SeenJob, progress: Progress, total: int | None) -> str:
    limit = job.spec.max_run_seconds
    if limit is not None:
        left = max(0.0, limit - trained_seconds(job.status))
    elif total is not None:
        left = max(0, total - progress.steps) / progress.steps_per_second / (1.0 - _pause_share(progress))
    else:
        return ": what is left is known after its first epoch"
    return f": {duration(left)} left if it keeps its GPUs"


def _pause_share(progress: Progress) -> float:
    return min(0.95, progress.paused_seconds / progress.trained_seconds) if progress.trained_seconds > 0 else 0.0


def _epochs(job: SeenJob) -> str:
    if job.spec.epochs is None:
        return ""
    each = epoch_steps(job.status)
    return f" ({job.spec.epochs} epochs" + (f" of {each})" if each is not None else ")")
