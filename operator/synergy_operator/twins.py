"""Identical jobs that are not measured yet: one of them is, the others wait for its profile."""

from collections.abc import Mapping
from dataclasses import dataclass

from synergy_operator.run_step import open_allocation
from synergy_operator.views import JobView

Key = tuple[str, str]
"""(namespace, name)."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A job that asks for a place to be measured, or has one. `gpu_types` are those it may use, empty means any; of two
    identical jobs the one with the lower `rank` is measured."""

    key: Key
    fingerprint: str
    gpu_types: frozenset[str]
    rank: tuple[bool, bool, float, Key]

    def measures(self, gpu_type: str) -> bool:
        """Whether it is going to measure a type that has no matrix yet."""
        return not self.gpu_types or gpu_type in self.gpu_types


def rank_of(job: JobView) -> tuple[bool, bool, float, Key]:
    """A job that something hinders is the last; one that is being measured goes on; else the oldest is measured."""
    allocation = open_allocation(job.status)
    measuring = allocation is not None and allocation.purpose == "Profile"
    return _hindered(job), not measuring, job.created_at, job.key


def ask_of(job: JobView) -> Ask | None:
    """What a job asks for; None if it asks for nothing, as once it has failed, is suspended, or is measured, and None
    too where something keeps it from being measured (a quota, a missing volume, labels that no node has): that is its
    own affair, and nobody waits for it."""
    profile, spec = job.status.profile, job.spec
    if job.deleting or spec is None or spec.suspend or job.status.phase != "Profiling":
        return None
    if profile is None or profile.request is None or _hindered(job):
        return None
    return Ask(job.key, profile.fingerprint, frozenset(spec.gpu_types), rank_of(job))


def _hindered(job: JobView) -> bool:
    service = job.status.service
    return job.status.problem is not None or (
        service is not None and bool(service.refusals or service.counted_failures)
    )


class Asking:
    """All jobs that ask; `by_fingerprint` is what a reconcile looks at."""

    def __init__(self) -> None:
        self._of: dict[Key, Ask] = {}
        self.by_fingerprint: dict[str, dict[Key, Ask]] = {}

    def note(self, key: Key, job: JobView | None) -> frozenset[str]:
        """Take over what a job asks for now, None if it is gone. The fingerprints whose jobs this concerns."""
        old, new = self._of.pop(key, None), ask_of(job) if job is not None else None
        if old is not None:
            same = self.by_fingerprint[old.fingerprint]
            del same[key]
            if not same:
                del self.by_fingerprint[old.fingerprint]
        if new is not None:
            self._of[key] = new
            self.by_fingerprint.setdefault(new.fingerprint, {})[key] = new
        return frozenset(ask.fingerprint for ask in (old, new) if ask is not None) if old != new else frozenset()


def ahead_of(job: JobView, asking: Mapping[Key, Ask]) -> tuple[Ask, ...]:
    """The identical jobs that are measured before this one."""
    own = rank_of(job)
    return tuple(sorted((a for key, a in asking.items() if key != job.key and a.rank < own), key=lambda a: a.rank))
