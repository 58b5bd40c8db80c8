"""The next step for one job of the hub. Pure.

A job never runs twice, because of four rules:

1. The hub's status names one worker cluster and the number of the offer. It is written with the version of the object
   that was read, so of two writers one is refused.
2. In a worker cluster no run starts before the copy has the annotation `may-start` with the offer's number. Its
   operator sees to that, whatever the hub does.
3. The hub fixes an offer in its own status first, and writes `may-start` only after that write has succeeded.
4. A fixed offer is never changed, whatever happens to its cluster, unless a user says that this very copy never runs
   again (`give-up`), and the cluster is away.

So it does not matter whether the copy of an offer that is not fixed can be deleted: it can never start. It is deleted
as soon as its cluster can be reached.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

from synergy_clusters.views import Copy, HubJob


class Step(StrEnum):
    """What to do next for a job."""

    NOTHING = auto()
    PROTECT = auto()
    """Write the finalizer: the hub's job must not vanish while it has a copy."""
    RELEASE = auto()
    """Remove the finalizer."""
    CHOOSE = auto()
    """Offer it to the worker cluster where it starts soonest."""
    CREATE = auto()
    """Create the copy that the offer names."""
    FIX = auto()
    """Write into the hub's status that it stays."""
    PERMIT = auto()
    """Let the fixed copy start."""
    UPDATE = auto()
    """Write the hub's spec into the copy."""
    DELETE_COPY = auto()
    TELL = auto()
    """Bring the copy's status to the hub, or what is known without it."""
    FAIL = auto()
    """The copy that may have started is gone: the job has failed."""
    GIVE_UP = auto()
    """Write into the hub's status that the fixed copy is given up. Another cluster may have the job then."""
    KEEP = auto()
    """Remove the annotation that gives the copy up: its cluster answers."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the hub knows of the worker cluster that the offer names. `away_s`: for how long it could not act there.
    `answers`: the cluster does, even if it has not taken the hub's mark."""

    reachable: bool
    away_s: float = 0.0
    copy: Copy | None = None
    answers: bool = False


def next_step(job: HubJob, seen: Seen, *, away_s: float) -> Step:
    """The next step. `seen` is of the cluster that `job.offer` names; `away_s` is how long a cluster may be away."""
    if job.deleting:
        return _deletion(job, seen, away_s) if job.finalizer else Step.NOTHING
    if job.finished:
        return Step.NOTHING
    if not job.offer.name:
        return _without_offer(job)
    return _reachable(job, seen.copy) if seen.reachable else _away(job, seen, away_s)


def _deletion(job: HubJob, seen: Seen, away_s: float) -> Step:
    if not job.offer.name:
        return Step.RELEASE
    if not seen.reachable:
        return Step.TELL if job.offer.fixed and not _lost(job, seen, away_s) else Step.RELEASE
    return Step.DELETE_COPY


def _away(job: HubJob, seen: Seen, away_s: float) -> Step:
    if job.offer.fixed:
        return Step.GIVE_UP if _lost(job, seen, away_s) else Step.TELL
    return Step.CHOOSE if seen.away_s >= away_s and not job.suspended else Step.TELL


def _lost(job: HubJob, seen: Seen, away_s: float) -> bool:
    return job.given_up and seen.away_s >= away_s and not seen.answers


def _without_offer(job: HubJob) -> Step:
    if job.suspended:
        return Step.TELL
    return Step.CHOOSE if job.finalizer else Step.PROTECT


def _reachable(job: HubJob, copy: Copy | None) -> Step:
    if job.given_up:
        return Step.KEEP
    if copy is None or copy.deleting or not copy.is_of(job, job.offer):
        return _without_copy(job, copy)
    return _with_copy(job, copy)


def _with_copy(job: HubJob, copy: Copy) -> Step:
    if job.offer.fixed and not copy.may_start:
        return Step.PERMIT
    if not job.offer.fixed and (copy.may_start or (copy.asks and not job.suspended)):
        return Step.FIX
    return Step.UPDATE if copy.generation != str(job.generation) else Step.TELL


def _without_copy(job: HubJob, copy: Copy | None) -> Step:
    """The cluster does not have the copy, or is deleting it, or something else has its name."""
    if job.offer.fixed:
        return Step.TELL if copy is not None and copy.deleting else Step.FAIL
    return Step.CREATE if copy is None else Step.DELETE_COPY if not copy.deleting else Step.TELL


def is_left_over(job: HubJob | None, cluster: str, copy: Copy) -> bool:
    """Whether the copy is of a job that is gone, or of an offer that came before the present one. A copy of a later
    offer is newer than what the hub's watch has brought, unless the present one is fixed."""
    if job is None or copy.hub_job_uid != job.uid:
        return True
    if job.offer.fixed:
        return (cluster, copy.offer) != (job.offer.name, job.offer.offer)
    if copy.offer != job.offer.offer:
        return copy.offer < job.offer.offer
    return cluster != job.offer.name


def unknown_copy(job: HubJob, copies: Mapping[str, Copy]) -> str | None:
    """The cluster whose copy comes from an offer that the hub's status does not know: it was restored from a backup, or
    what was read of it is old. One that may start comes before one that may not, then the latest offer."""
    if job.deleting or job.finished or job.offer.fixed:
        return None
    known = job.offer.name, job.offer.offer
    unknown = [
        (copy.may_start, copy.offer, name)
        for name, copy in copies.items()
        if copy.hub_job_uid == job.uid and not copy.deleting and (name, copy.offer) != known
        if copy.offer > (job.offer.given_up or 0)
        if copy.may_start or copy.offer > job.offer.offer
    ]
    return max(unknown)[2] if unknown else None
