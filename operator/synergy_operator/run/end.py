"""The books of a run that has ended: attained service, counts, and when the job may run again.

A run is closed in one status write, which is refused if the job has changed since: either all of it counts or none, so
that no crash between two writes loses service or counts it twice.
"""

from collections.abc import Iterable
from typing import Final

from synergy_api.allocation import Allocation
from synergy_api.reasons import Reason
from synergy_api.timestamps import format_time, parse_time
from synergy_api.training_job import RunOutcome, ServiceStatus
from synergy_operator.run.step import reason_of
from synergy_operator.views.pod import PodView

_REFUSED: Final = frozenset(
    {
        Reason.POD_REFUSED,
        Reason.SERVICE_REFUSED,
        Reason.START_REFUSED,
        Reason.PODS_NOT_STARTED,
        Reason.PROFILE_POD_MISSING,
        Reason.VOLUME_NOT_MOUNTED,
        Reason.GANG_NOT_BOUND,
    }
)


def started_at(pods: Iterable[PodView], workers: int) -> float | None:
    """When the last of all workers started; None while one has not. From the pods, so that it is the same whoever looks
    and whenever."""
    starts = [pod.main.started_at for pod in pods]
    started = [start for start in starts if start is not None]
    return max(started) if started and len(started) == len(starts) >= workers else None


def ended_at(pods: Iterable[PodView], now: float) -> float:
    """When the last worker ended, `now` where one of them took that knowledge with it."""
    ends = [pod.main.finished_at for pod in pods]
    return max((end for end in ends if end is not None), default=now) if None not in ends else now


def close(
    service: ServiceStatus, allocation: Allocation, outcome: RunOutcome, *, ended: float, gpus: int, now: float
) -> ServiceStatus:
    """The books after the run: `ended` is when its last worker stopped (Unix seconds), `gpus` what the job held."""
    run = allocation.run
    seconds, received, spread = 0.0, dict(service.received_seconds), dict(service.spread_seconds)
    ran = service.running_since is not None
    if service.running_since is not None:
        seconds = max(0.0, ended - parse_time(service.running_since))
        kind = service.running_gpu_type or allocation.gpu_type
        received[kind] = round(received.get(kind, 0.0) + seconds, 3)
        if allocation.spread:
            spread[kind] = round(spread.get(kind, 0.0) + seconds, 3)
    failures = service.failures + (outcome.outcome == "Failed")
    refusals = _refusals(service, outcome, ran)
    preempted = ran and outcome.outcome == "Yielded" and allocation.state == "Revoked"
    return service.model_copy(
        update={
            "run": max(service.run, run),
            "ended_run": run,
            "running_since": None,
            "running_gpu_type": None,
            "attained_gpu_seconds": round(service.attained_gpu_seconds + seconds * gpus, 3),
            "received_seconds": received,
            "spread_seconds": spread,
            "preemptions": service.preemptions + preempted,
            "failures": failures,
            "refusals": refusals,
            "retry_at": _retry_at(outcome, failures - (service.forgiven or 0), refusals, now),
            "last": outcome,
        }
    )


def not_before(books: ServiceStatus, moment: float) -> ServiceStatus:
    """The same, with no run before `moment` (Unix seconds)."""
    if books.retry_at is not None and parse_time(books.retry_at) >= moment:
        return books
    return books.model_copy(update={"retry_at": format_time(moment)})


def _refusals(service: ServiceStatus, outcome: RunOutcome, ran: bool) -> int:
    """Refused again by what no plan sees, such as a quota: each such run holds GPUs for nothing for a while."""
    if outcome.outcome == "Evicted" and reason_of(outcome).reason in _REFUSED:
        return service.refusals + 1
    return service.refusals if outcome.outcome in ("Evicted", "Yielded") and not ran else 0


def _retry_at(outcome: RunOutcome, failures: int, refusals: int, now: float) -> str | None:
    if outcome.outcome == "Failed":
        return format_time(now + backoff_seconds(failures))
    if outcome.outcome == "Evicted" and refusals:
        return format_time(now + refused_seconds(refusals))
    return format_time(now + evicted_seconds()) if outcome.outcome == "Evicted" else None


_FIRST_SECONDS: Final = 10.0


_MOST_SECONDS: Final = 300.0


_MOST_REFUSED_SECONDS: Final = 600.0


_EVICTED_SECONDS: Final = 10.0


def backoff_seconds(failures: int) -> float:
    """Wait after the given number of failed runs (at least 1): 10 s, doubled by each, 5 min at the most."""
    return min(_MOST_SECONDS, _doubled(failures))


def refused_seconds(refusals: int) -> float:
    """Wait after the given number of refused runs in a row (at least 1): 10 s, doubled by each, 10 min at the most.

    A job that attains no service is first under LAS and displaces others for each try. Tries must become rare.
    """
    return min(_MOST_REFUSED_SECONDS, _doubled(refusals))


def evicted_seconds() -> float:
    """Wait after a run that was lost through no fault of its own: long enough for the ledger to learn what happened."""
    return _EVICTED_SECONDS


def _doubled(times: int) -> float:
    return _FIRST_SECONDS * float(1 << min(times - 1, 16))
