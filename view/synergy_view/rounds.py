"""What the last rounds decided: which jobs started, left and began to wait, and why.

If a recorder keeps the history, `by_round` divides it into rounds. Otherwise statuses and the events that still exist
are the source.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from synergy_api.reasons import ENTRIES, Reason, ReasonPlace
from synergy_api.timestamps import parse_time
from synergy_view.seen import Object, SeenJob
from synergy_view.words import count

What = Literal["started", "resized", "leaves", "ended", "waits"]
_STARTED: Final = frozenset({Reason.WAITING_FOR_ROOM, Reason.WORKERS_STARTING, Reason.WORKERS_RUNNING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One job in a round."""

    at_s: float
    job: str
    what: What
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round in which something was decided. Times are in seconds since the epoch."""

    index: int
    starts_s: float
    decided: tuple[Decided, ...]


def rounds(jobs: Iterable[SeenJob], events: Iterable[Object], round_s: float, *, most: int) -> list[Round]:
    """The last `most` rounds in which something was decided, the newest first. `events` are those of TrainingJobs.

    An event counts for the round that it was posted in. A run without an event counts for the round of its allocation.
    """
    found = _once([one for event in events if (one := _of_event(event)) is not None])
    started = {one.job for one in found if one.what == "started"}
    for job in jobs:
        allocation = job.status.allocation
        if allocation is None or not job.gpus_held or job.full_name in started:
            continue
        index = _started_in(job, allocation.round, round_s)
        message = f"run {allocation.run} holds {count(job.gpus_held, f'{job.gpu_type} GPU')}"
        found.append(
            Decided(at_s=index * round_s, job=job.full_name, what="started", reason=job.phase, message=message)
        )
    return by_round(found, round_s, most=most)


def by_round(found: Iterable[Decided], round_s: float, *, most: int) -> list[Round]:
    """What was decided in the last `most` rounds in which anything was, the newest first."""
    by_index: dict[int, list[Decided]] = {}
    for one in found:
        by_index.setdefault(math.floor(one.at_s / round_s), []).append(one)
    return [
        Round(index=index, starts_s=index * round_s, decided=tuple(sorted(by_index[index], key=_order)))
        for index in sorted(by_index, reverse=True)[:most]
    ]


def _once(found: Iterable[Decided]) -> list[Decided]:
    """By time, and of the events of one start only the first."""
    last: dict[str, What] = {}
    kept = []
    for one in sorted(found, key=_order):
        if one.what != "started" or last.get(one.job) != "started":
            kept.append(one)
        last[one.job] = one.what
    return kept


def _started_in(job: SeenJob, newest: int, round_s: float) -> int:
    """The round in which the workers of the open run began; before they did, the one that decided last."""
    service = job.status.service
    if service is None or service.running_since is None:
        return newest
    return math.floor(parse_time(service.running_since) / round_s)


def _of_event(event: Object) -> Decided | None:
    involved: Mapping[str, Any] = event.get("regarding") or event.get("involvedObject") or {}
    at = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    reason = str(event.get("reason") or "")
    what = what_of(reason)
    if involved.get("kind") != "TrainingJob" or not at or what is None:
        return None
    return Decided(
        at_s=parse_time(at),
        job=f"{involved.get('namespace', '')}/{involved.get('name', '')}",
        what=what,
        reason=reason,
        message=str(event.get("note") or event.get("message") or ""),
    )


def what_of(word: str) -> What | None:
    """What an event of this reason says of a job; None where it says nothing of a plan."""
    if word not in Reason._value2member_map_:
        return None
    reason = Reason(word)
    if reason in _STARTED:
        return "started"
    if reason is Reason.YIELDING:
        return "leaves"
    places = ENTRIES[reason].places
    if ReasonPlace.QUEUE in places:
        return "waits"
    return "ended" if ReasonPlace.LAST_RUN in places else None


def _order(one: Decided) -> tuple[float, str, str]:
    return one.at_s, one.job, one.what
