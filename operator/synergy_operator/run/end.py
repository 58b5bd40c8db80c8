"""Accounting at the end of a run: attained service, counts, and the earliest time of the next run.

One status write closes a run. The API server refuses it if the job has changed since. A crash therefore does not lose
service or count it twice.
"""

from collections.abc import Iterable
from typing import Final

from synergy_api.parts.allocation import Allocation
from synergy_api.parts.progress import Progress
from synergy_api.parts.service import RunOutcome, ServiceStatus
from synergy_api.reasons import Reason
from synergy_api.timestamps import format_time, parse_time
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
_FIRST_SECONDS: Final = 10.0
_MOST_SECONDS: Final = 300.0
_MOST_REFUSED_SECONDS: Final = 600.0
_EVICTED_SECONDS: Final = 10.0


def started_at(pods: Iterable[PodView], workers: int) -> float | None:
    """When the last of all workers started, in Unix seconds; None while a worker has not.

    It is derived from the pods, so it does not depend on when the operator looks.
    """
    starts = [pod.main.started_at for pod in pods]
    started = [start for start in starts if start is not None]
    return max(started) if started and len(started) == len(starts) >= workers else None


def ended_at(pods: Iterable[PodView], now: float) -> float:
    """When the last worker ended, in Unix seconds; `now` if the end of one is unknown."""
    ends = [pod.main.finished_at for pod in pods]
    return max((end for end in ends if end is not None), default=now) if None not in ends else now


def close_run(
    service: ServiceStatus, allocation: Allocation, outcome: RunOutcome, *, ended: float, gpus: int, now: float
) -> ServiceStatus:
    """The accounting after the run.

    `ended` is when its last worker stopped (Unix seconds). `gpus` is the number of GPUs that the job held.
    """
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


def not_before(accounting: ServiceStatus, moment: float) -> ServiceStatus:
    """The accounting with no further run before `moment` (Unix seconds)."""
    if accounting.retry_at is not None and parse_time(accounting.retry_at) >= moment:
        return accounting
    return accounting.model_copy(update={"retry_at": format_time(moment)})


def left_unsaved(allocation: Allocation, outcome: RunOutcome, progress: Progress | None) -> bool:
    """Whether the run left unasked, with steps that no checkpoint has: it may write none, or has no place for one."""
    if allocation.state == "Revoked" or outcome.outcome != "Yielded" or outcome.step is None:
        return False
    return progress is not None and progress.run == allocation.run and progress.steps > outcome.step


def held_back(accounting: ServiceStatus, refusals: int, now: float) -> ServiceStatus:
    """The accounting after one more refused run than `refusals`. A job that can never write a checkpoint would
    otherwise train the same steps again at once, for ever."""
    times = refusals + 1
    return accounting.model_copy(update={"refusals": times, "retry_at": format_time(now + refused_seconds(times))})


def _refusals(service: ServiceStatus, outcome: RunOutcome, ran: bool) -> int:
    """The number of consecutive refused runs.

    A run is refused by something that no plan sees, such as a quota. Each such run holds GPUs in vain for a while.
    """
    if outcome.outcome == "Evicted" and reason_of(outcome).reason in _REFUSED:
        return service.refusals + 1
    return service.refusals if outcome.outcome in ("Evicted", "Yielded") and not ran else 0


def _retry_at(outcome: RunOutcome, failures: int, refusals: int, now: float) -> str | None:
    if outcome.outcome == "Failed":
        return format_time(now + backoff_seconds(failures))
    if outcome.outcome == "Evicted" and refusals:
        return format_time(now + refused_seconds(refusals))
    return format_time(now + evicted_seconds()) if outcome.outcome == "Evicted" else None


def backoff_seconds(failures: int) -> float:
    """Delay after the given number of failed runs (at least 1): 10 s, doubled each time, 5 min at most."""
    return min(_MOST_SECONDS, _doubled(failures))


def refused_seconds(refusals: int) -> float:
    """Delay after the given number of consecutive refused runs (at least 1): 10 s, doubled each time, 10 min at most.

    A job without attained service is first under LAS, and each try displaces other jobs. Tries must become rare.
    """
    return min(_MOST_REFUSED_SECONDS, _doubled(refusals))


def evicted_seconds() -> float:
    """Delay after a run that was lost through no fault of its own. In this time the extender learns what happened."""
    return _EVICTED_SECONDS


def _doubled(times: int) -> float:
    return _FIRST_SECONDS * float(1 << min(times - 1, 16))
