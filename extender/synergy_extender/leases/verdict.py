"""The answer to a worker report: train on, or leave and when. Pure."""

from dataclasses import dataclass
from typing import Literal

from synergy_api.amounts import Amounts
from synergy_api.parts.allocation import Allocation
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_api.timestamps import parse_time
from synergy_extender.cluster.views import PodView
from synergy_extender.rounds import Rounds

MOST_SECONDS = 10.0
"""Longest time between two reports."""
LEAST_SECONDS = 0.2


@dataclass(frozen=True)
class Verdict:
    """The answer to a report. Times in seconds from now."""

    verdict: Literal["continue", "yield"]
    yield_in_s: float | None
    lease_remaining_s: float
    next_report_s: float
    cpu_millis: int
    memory_bytes: int


def verdict(status: TrainingJobStatus, pod: PodView, now: float, rounds: Rounds, planned: int = 0) -> Verdict:
    """What the pod of `pod.member.run` shall do. A pod of a run that is over, or of none, leaves at once. `planned` is
    the newest round that is known to be planned and written.

    A granted run holds its place to the end of the round, and of the next one once that is planned: nothing is written
    to renew its lease (decision 79).

    So does a pod that was deleted: its node may be cut off from the API server, and the next run counts on its leaving
    (decision 27)."""
    allocation = status.allocation
    run = pod.member.run if pod.member is not None else 0
    ended = status.service.ended_run if status.service is not None else 0
    if allocation is None or allocation.run != run or allocation.state == "Released" or ended >= run:
        return leave_at_once(pod)
    if pod.leaves_by is not None:
        return _leave(0.0, _share(pod, allocation))
    if allocation.state == "Revoked":
        remaining = max(0.0, parse_time(allocation.lease_until) - now) if allocation.lease_until is not None else 0.0
        # a lease that is longer was written by a clock that was ahead
        remaining = min(remaining, rounds.seconds + rounds.lead_s)
        return _leave(remaining, _share(pod, allocation), early_s=_save_seconds(status))
    here = rounds.at(now)
    # a round further ahead is a clock's that was ahead, or was counted in rounds of another length
    decided = here + 1 in (allocation.round, planned)
    next_report = next_report_s(now, rounds, decided=decided, spread=_spread(pod.uid))
    remaining = rounds.end(here + 1 if decided else here) - now
    return Verdict("continue", None, _rounded(remaining), next_report, **_share(pod, allocation).fields)


def leave_at_once(pod: PodView) -> Verdict:
    """The answer to a pod that no job gives a place any more."""
    return _leave(0.0, _share(pod, None))


def next_report_s(now: float, rounds: Rounds, *, decided: bool, spread: float) -> float:
    """When to report again: after a quarter of a round or ten seconds, but once between the plan and the boundary.

    `decided` says whether the coming round's decision is known already; `spread`, from 0 to 1, keeps jobs apart.
    """
    usual = min(MOST_SECONDS, rounds.seconds / 4)
    if decided:
        return _rounded(usual)
    boundary = rounds.end(rounds.at(now))
    aim = boundary - rounds.lead_s * (0.4 + 0.3 * spread)
    if now + usual <= aim - LEAST_SECONDS:
        return _rounded(usual)
    if now < aim:
        return _rounded(max(LEAST_SECONDS, aim - now))
    return _rounded(max(LEAST_SECONDS, min(usual, (boundary - now) / 2)))


def _leave(seconds: float, share: Amounts, *, early_s: float = 0.0) -> Verdict:
    """The worker stops training `early_s` before the lease ends, as far as there is time, and writes its checkpoint."""
    left, leave_in = _rounded(seconds), _rounded(max(0.0, seconds - early_s))
    return Verdict("yield", leave_in, left, leave_in, **share.fields)


def _save_seconds(status: TrainingJobStatus) -> float:
    """How long the job's newest checkpoint took, 0 where it has not said."""
    return (status.progress.save_seconds if status.progress is not None else None) or 0.0


def _share(pod: PodView, allocation: Allocation | None) -> Amounts:
    """What the pod may use: its part, by GPUs, of what the plan gives the job on its node; else what it asked for."""
    shares = allocation.workers if allocation is not None else []
    share = next((s for s in shares if s.node == (pod.node or pod.planned_node)), None)
    if share is None:
        return pod.requests
    whole = share.devices or share.gpus
    return Amounts.of(share).part(min(pod.requests.gpus, whole), whole)


def _spread(uid: str) -> float:
    return (sum(uid.encode()) % 101) / 100


def _rounded(seconds: float) -> float:
    return round(seconds, 3)
