"""Identical jobs that are not measured yet: one of them is, the others wait for its profile."""

from collections.abc import Mapping

from synergy_operator.run.allocation import open_allocation
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key
from synergy_operator.views.profile_candidate import ProfileCandidate


def rank_of(job: JobView) -> tuple[bool, bool, float, Key]:
    """A job that something hinders is the last; one that is being measured goes on; else the oldest is measured."""
    allocation = open_allocation(job.status)
    measuring = allocation is not None and allocation.purpose == "Profile"
    return _has_problem(job), not measuring, job.created_at, job.key


def candidate_of(job: JobView) -> ProfileCandidate | None:
    """What a job asks for; None if it asks for nothing, as once it has failed, is suspended, or is measured, and None
    too where something keeps it from being measured (a quota, a missing volume, labels that no node has): that is its
    own affair, and nobody waits for it."""
    profile, spec = job.status.profile, job.spec
    if job.deleting or spec is None or spec.suspend or job.status.phase != "Profiling":
        return None
    if profile is None or profile.request is None or _has_problem(job):
        return None
    return ProfileCandidate(job.key, profile.fingerprint, frozenset(spec.gpu_types), rank_of(job))


def _has_problem(job: JobView) -> bool:
    service = job.status.service
    return job.status.problem is not None or (
        service is not None and bool(service.refusals or service.counted_failures)
    )


def candidates_before(job: JobView, asking: Mapping[Key, ProfileCandidate]) -> tuple[ProfileCandidate, ...]:
    """The identical jobs that are measured before this one."""
    own = rank_of(job)
    return tuple(sorted((a for key, a in asking.items() if key != job.key and a.rank < own), key=lambda a: a.rank))
