"""What a job is doing, in a few fields and in one line."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from synergy_api.length import total_steps
from synergy_api.resources.training_job import FINISHED, Phase
from synergy_view.seen import SeenJob
from synergy_view.why import why
from synergy_view.words import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """One look at a job. `reason` is one of docs/troubleshooting.md, or the phase where no reason is given."""

    job: str
    """NAMESPACE/NAME."""
    phase: Phase
    reason: str
    message: str
    steps_done: int
    steps: int | None
    """None while the steps of an epoch are not known, and where the job ends by time."""
    metrics: Mapping[str, float]
    """The newest values that the script reported by `synergy_job.report`."""
    gpus: int
    """GPUs that it wants."""
    gpus_held: int
    """GPUs that it holds now; 0 while it waits."""
    gpu_type: str
    """Of the GPUs that it holds; empty while it waits."""
    run: int
    """Number of its newest run; 0 before the first."""

    @property
    def finished(self) -> bool:
        """Whether it has succeeded or failed."""
        return self.phase in FINISHED

    def __str__(self) -> str:
        told = self.phase if self.reason == self.phase else f"{self.phase}: {self.reason}"
        return printable(f"{told}: {self.message}" if self.message else told)


def status_of(job: SeenJob) -> JobStatus:
    """The status as it is now."""
    answer = why(job, (), time.time())
    progress, allocation = job.status.progress, job.status.allocation
    return JobStatus(
        job=job.full_name,
        phase=job.phase,
        reason=answer.reason,
        message=answer.message,
        steps_done=progress.steps if progress is not None else 0,
        steps=total_steps(job.spec, job.status),
        metrics=dict((progress.metrics if progress is not None else None) or {}),
        gpus=job.spec.gpus,
        gpus_held=job.gpus_held,
        gpu_type=job.gpu_type,
        run=allocation.run if allocation is not None else 0,
    )
