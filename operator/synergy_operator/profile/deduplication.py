"""Identical jobs that are not measured yet: one of them is measured, the others wait for its profile."""

from collections.abc import Mapping

from synergy_operator.run.allocation import open_allocation
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key
from synergy_operator.views.profile_candidate import ProfileCandidate


def rank_of(job: JobView) -> tuple[bool, bool, float, Key]:
    """The order in which identical jobs are measured, lowest first.

    Jobs without a problem come first, then the job that is being measured, then the oldest.
    """
    allocation = open_allocation(job.status)
    measuring = allocation is not None and allocation.purpose == "Profile"
    return _has_problem(job), not measuring, job.created_at, job.key


def candidate_of(job: JobView) -> ProfileCandidate | None:
    """The job as a candidate; None if it does not ask to be measured.

    A job with a problem of its own, such as a quota, a missing volume or labels that no node has, is no candidate.
    Other jobs do not wait for it.
    """
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


def candidates_before(job: JobView, candidates: Mapping[Key, ProfileCandidate]) -> tuple[ProfileCandidate, ...]:
    """The candidates that are measured before this job."""
    own = rank_of(job)
    others = (other for key, other in candidates.items() if key != job.key and other.rank < own)
    return tuple(sorted(others, key=lambda other: other.rank))
