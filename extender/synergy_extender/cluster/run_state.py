"""A job's state in the run protocol, and the service that it has received, from its status alone."""

from enum import StrEnum, auto

from synergy_api.length import total_steps
from synergy_api.parts.allocation import Allocation
from synergy_api.parts.service import ServiceStatus
from synergy_api.parts.sizes import SizeLimits
from synergy_api.resources.training_job import FINISHED, TrainingJobStatus
from synergy_api.timestamps import parse_time
from synergy_core.model.snapshot import FieldError
from synergy_extender.cluster.views import JobView

_NO_SERVICE = ServiceStatus()
LONGEST_BACKOFF_S = 660.0
LONGEST_FENCE_S = 4000.0
"""A retryAt that is further away was written by a clock that was wrong, and does not hold: waits after failures and
refusals are 10 min at most, after the loss of a worker the fence of an hour at most (decision 27)."""
_MOST_STEPS = 1 << 50
"""More than that the planner is not told."""
_LOST = ("WorkerLost", "PlaceLost", "LeaseOver")


class RunState(StrEnum):
    """What the planner may do with a job."""

    IDLE = auto()
    """Wants nothing: not validated, being profiled by a series that asks for no place, suspended, or finished."""
    BACKING_OFF = auto()
    """Wants to run, but not before `service.retryAt`."""
    WAITING = auto()
    """Wants a place."""
    HOLDING = auto()
    """Has a granted place."""
    LEAVING = auto()
    """It is revoked or being deleted, and still holds what it had."""


def service_of(job: JobView) -> ServiceStatus:
    """The job's service, empty before the first run."""
    return job.status.service or _NO_SERVICE


def open_run(job: JobView) -> Allocation | None:
    """The allocation of a run that has not ended, or None."""
    allocation = job.status.allocation
    if allocation is None or allocation.state == "Released" or service_of(job).ended_run >= allocation.run:
        return None
    return allocation


def size_limits(job: JobView) -> SizeLimits | None:
    """What the open run's pods can be resized to, where refusals have taught that."""
    allocation, limits = open_run(job), job.status.size_limits
    return limits if allocation is not None and limits is not None and limits.run == allocation.run else None


def run_state(job: JobView, now: float) -> RunState:
    """The state of the job at `now`."""
    allocation = open_run(job)
    if allocation is not None:
        return RunState.HOLDING if allocation.state == "Granted" and not job.deleting else RunState.LEAVING
    waits = job.status.phase == "Queued" or (job.status.phase == "Profiling" and _asks_for_profile_place(job.status))
    if not waits or job.deleting or job.spec.suspend or job.status.phase in FINISHED:
        return RunState.IDLE
    retry_at = service_of(job).retry_at
    if retry_at is not None and now < parse_time(retry_at) <= now + _longest_wait_s(service_of(job)):
        return RunState.BACKING_OFF
    return RunState.WAITING


def _longest_wait_s(service: ServiceStatus) -> float:
    """How far away the job's retryAt can be."""
    if service.last is not None and service.last.reason.startswith(_LOST):
        return LONGEST_FENCE_S
    tries = max(service.failures, service.refusals)
    return min(LONGEST_BACKOFF_S, 60.0 + 10.0 * 2.0 ** min(tries, 10))


def next_run(job: JobView) -> int:
    """Number of the run that a new place starts."""
    allocated = job.status.allocation.run if job.status.allocation is not None else 0
    return max(allocated, service_of(job).run) + 1


def open_seconds(job: JobView, now: float) -> float:
    """Seconds for which the open run's workers have run."""
    since = service_of(job).running_since
    return max(0.0, now - parse_time(since)) if since is not None else 0.0


def run_started(job: JobView, now: float) -> float:
    """When the open run's workers began; `now` where they have not: a run that has hardly begun is a young one."""
    since = service_of(job).running_since
    return parse_time(since) if since is not None else now


def attained_gpu_seconds(job: JobView, now: float) -> float:
    """Attained service (Tiresias, section 3): closed runs and the open one."""
    return service_of(job).attained_gpu_seconds + open_seconds(job, now) * job.spec.gpus


def received_seconds(job: JobView, now: float) -> dict[str, float]:
    """Seconds of service by GPU type, the open run included."""
    service = service_of(job)
    received = dict(service.received_seconds)
    if service.running_since is not None and service.running_gpu_type is not None:
        gpu_type = service.running_gpu_type
        received[gpu_type] = received.get(gpu_type, 0.0) + open_seconds(job, now)
    return received


def spread_seconds(job: JobView, now: float) -> dict[str, float]:
    """The part of `received_seconds` in which its place was spread. Raises FieldError where more is recorded."""
    service, allocation = service_of(job), job.status.allocation
    spread = dict(service.spread_seconds)
    for gpu_type, seconds in spread.items():
        whole = service.received_seconds.get(gpu_type, 0.0)
        if seconds > whole:
            problem = f"{seconds} is above receivedSeconds.{gpu_type} {whole}, of which it is a part; correct it"
            raise FieldError(f"status.service.spreadSeconds.{gpu_type}", problem)
    kind = service.running_gpu_type
    if allocation is not None and allocation.spread and allocation.run == service.run and kind is not None:
        spread[kind] = spread.get(kind, 0.0) + open_seconds(job, now)
    return spread


def waiting_seconds(job: JobView, now: float) -> float:
    """Seconds since its creation in which it did not run and was not suspended."""
    service = service_of(job)
    since = service.suspended_since
    held = service.suspended_seconds + (max(0.0, now - parse_time(since)) if since is not None else 0.0)
    return max(0.0, now - job.created - held - sum(received_seconds(job, now).values()))


def steps_done(job: JobView) -> int:
    """Steps done: what the newest ended run said on leaving where no later run has reported, else the last report."""
    progress, last = job.status.progress, service_of(job).last
    total = total_steps(job.spec, job.status)
    most = _MOST_STEPS if total is None else total
    if last is not None and last.step is not None and (progress is None or last.run >= progress.run):
        return min(last.step, most)
    return min(progress.steps, most) if progress is not None else 0


def _asks_for_profile_place(status: TrainingJobStatus) -> bool:
    return status.profile is not None and status.profile.request is not None
