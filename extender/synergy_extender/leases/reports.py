"""From a worker's report to the status's progress. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synergy_api.length import share_done, total_steps
from synergy_api.parts.progress import MOST_METRICS, MetricName, Progress
from synergy_api.parts.service import LONGEST_EARLY, RunOutcome
from synergy_api.timestamps import format_time, parse_time
from synergy_extender.cluster.measured_speeds import measured_after
from synergy_extender.cluster.placements import NO_DOMAINS, Domains, placements_after
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.colocation.measured import partners_now, shared_after

_NOTHING = Progress()
_NOBODY: Mapping[Key, JobView] = MappingProxyType({})
WRITE_SECONDS = 2.0
"""A job's progress is written at most this often, but for its last report."""

_TOLD_LAST = ("steps", "checkpoint_steps", "metrics", "ended_early")


class Report(BaseModel):
    """What a worker reports."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    step: Annotated[int, Field(ge=0, le=1 << 62, description="Training steps done, over all runs.")]
    checkpoint_step: Annotated[int, Field(ge=0, le=1 << 62, description="Steps in the newest checkpoint.")] = 0
    steps_per_second: Annotated[float, Field(ge=0, description="Throughput since the last reports.")] = 0.0
    gpu_uuids: Annotated[list[Annotated[str, Field(max_length=128)]], Field(max_length=64)] = []
    done: Annotated[bool, Field(description="This is the last report of the run.")] = False
    largest_tensor_bytes: Annotated[
        int | None, Field(ge=1, le=1 << 50, description="Bytes of the largest trained tensor.")
    ] = None
    model_bytes: Annotated[int | None, Field(ge=1, le=1 << 50, description="Bytes of all trained tensors.")] = None

    save_seconds: Annotated[float | None, Field(ge=0, le=1e6, description="How long the newest checkpoint took.")] = (
        None
    )
    resume_seconds: Annotated[
        float | None, Field(ge=0, le=1e6, description="From the process's start to its first step.")
    ] = None
    epoch_steps: Annotated[int | None, Field(ge=1, le=1 << 40, description="Steps of one pass over the data.")] = None
    trained_seconds: Annotated[float | None, Field(ge=0, le=1e10, description="Training of all runs.")] = None
    paused_seconds: Annotated[float | None, Field(ge=0, le=1e10, description="The pauses in it.")] = None
    metrics: Annotated[dict[MetricName, float] | None, Field(max_length=MOST_METRICS)] = None
    ended_early: Annotated[str | None, Field(max_length=LONGEST_EARLY, description="Why training ended early.")] = None

    sent_bytes_per_step: Annotated[
        int | None, Field(ge=1, le=1 << 50, description="Bytes that rank 0 sends the gang in a step.")
    ] = None
    world_size: Annotated[int | None, Field(ge=2, le=1 << 20, description="Processes that train together.")] = None

    @model_validator(mode="after")
    def _part_of_the_whole(self) -> "Report":
        if (self.largest_tensor_bytes is None) != (self.model_bytes is None):
            raise ValueError("largest_tensor_bytes and model_bytes come together")
        if self.largest_tensor_bytes is not None and self.largest_tensor_bytes > (self.model_bytes or 0):
            raise ValueError("largest_tensor_bytes must not be above model_bytes")
        return self


@dataclass(frozen=True)
class Reported:
    """A report of one run of the job with the uid."""

    uid: str
    run: int
    report: Report


def progress_after(
    job: JobView,
    reported: Reported,
    now: float,
    others: Mapping[Key, JobView] = _NOBODY,
    domains: Domains = NO_DOMAINS,
) -> Progress:
    """The progress that the report makes. Nothing falls within one run, whatever order reports come in. `others` are
    the cluster's jobs: some of them may have its GPU too. `domains` are those of its nodes."""
    report, before = reported.report, job.status.progress
    known = before or _NOTHING
    steps, checkpoint = report.step, report.checkpoint_step
    trained = known.trained_seconds if report.trained_seconds is None else report.trained_seconds
    if before is not None and before.run == reported.run:
        steps, checkpoint = max(steps, before.steps), max(checkpoint, before.checkpoint_steps)
        trained = max(trained, before.trained_seconds)
    progress = Progress(
        run=reported.run,
        steps=steps,
        checkpoint_steps=checkpoint,
        steps_per_second=report.steps_per_second,
        updated_at=format_time(now),
        largest_tensor_bytes=report.largest_tensor_bytes or known.largest_tensor_bytes,
        model_bytes=report.model_bytes or known.model_bytes,
        sent_bytes_per_step=report.sent_bytes_per_step or known.sent_bytes_per_step,
        world_size=report.world_size or known.world_size,
        save_seconds=known.save_seconds if report.save_seconds is None else report.save_seconds,
        resume_seconds=known.resume_seconds if report.resume_seconds is None else report.resume_seconds,
        epoch_steps=report.epoch_steps or known.epoch_steps,
        trained_seconds=trained,
        paused_seconds=max(known.paused_seconds, report.paused_seconds or 0.0),
        metrics=known.metrics if report.metrics is None else report.metrics or None,
        ended_early=report.ended_early,
        gpu_uuids=report.gpu_uuids,
        placements=placements_after(
            known.placements, job.status.allocation, reported.run, report.steps_per_second, domains
        ),
        measured=measured_after(job, reported.run, report.steps_per_second),
        gpu_partners=partners_now(job, reported.run, others),
    )
    shared = shared_after(known, progress, job, others, now)
    return progress.model_copy(update={"shared": shared, "percent": _percent(job, progress)})


def due(before: Progress | None, after: Progress, now: float, *, last: bool) -> bool:
    """The progress must be written now. `last`: the worker leaves after this report."""
    if before is None or before.updated_at is None or before.run != after.run:
        return True
    if last:
        return any(getattr(before, field) != getattr(after, field) for field in _TOLD_LAST)
    # either way: what a clock that was ahead has written must not stop the writes until the time has come
    return abs(now - parse_time(before.updated_at)) >= WRITE_SECONDS


def outdated(job: JobView, reported: Reported) -> bool:
    """Whether nothing of the report counts any more: its job is gone, or a newer run has reported. The end of its own
    run is no reason: of a run that left no word, the report may tell the newest checkpoint."""
    progress = job.status.progress
    return job.uid != reported.uid or (progress is not None and progress.run > reported.run)


def repaired(job: JobView) -> Progress | None:
    """The progress as the newest ended run left it, where the reports say otherwise; None where all is well.

    What rank 0 wrote on leaving counts. A run that left no word goes on from its newest checkpoint.
    """
    service, progress = job.status.service, job.status.progress
    last = service.last if service is not None else None
    if service is None or last is None or last.outcome == "Profiled" or service.ended_run < last.run:
        return None
    if progress is not None and progress.run > last.run:
        return None
    steps = _left_at(job, last, progress)
    known = progress or _NOTHING
    saved = known.save_seconds if last.save_seconds is None else last.save_seconds
    trained = known.trained_seconds if last.trained_seconds is None else last.trained_seconds
    as_left = (last.run, steps, saved, trained, last.ended_early)
    reported = (known.run, known.steps, known.save_seconds, known.trained_seconds, known.ended_early)
    if steps is None or reported == as_left:
        return None
    left = known.model_copy(
        update={
            "run": last.run,
            "steps": steps,
            "checkpoint_steps": max(steps, known.checkpoint_steps),
            "save_seconds": saved,
            "trained_seconds": trained,
            "ended_early": last.ended_early,
            "gpu_uuids": known.gpu_uuids if known.run == last.run else [],
            "gpu_partners": [],
        }
    )
    return left.model_copy(update={"percent": _percent(job, left)})


def _left_at(job: JobView, last: RunOutcome, progress: Progress | None) -> int | None:
    if last.step is not None:
        return last.step
    if last.outcome == "Succeeded" and (total := total_steps(job.spec, job.status)) is not None:
        return total
    return progress.checkpoint_steps if progress is not None and progress.run == last.run else None


def _percent(job: JobView, progress: Progress) -> int:
    status = job.status.model_copy(update={"progress": progress})
    return int(100 * (share_done(job.spec, status, progress.steps) or 0.0))
