"""The jobs that arrays have made, and which arrays news of them concern."""

from synergy_api.names import member_name
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.pods.members import member_of
from synergy_operator.views.job import JobView, Member
from synergy_operator.views.metadata import Key
from synergy_operator.views.stored_job import StoredJob


class Members:
    """What arrays read of their members, and the last known phase of each, from the watch or from an answer to a write
    of the operator."""

    def __init__(self, jobs: JobCache) -> None:
        self._jobs = jobs
        self._known: dict[Key, tuple[StoredJob, Member | None]] = {}
        self._seen: dict[Key, tuple[Key, str]] = {}

    def of(self, array: JobView) -> tuple[Member, ...]:
        """The jobs that it made, by index; none if it is no array. Only those that have changed since `update` are
        parsed: an array may have a thousand."""
        wanted = array.spec.array if array.spec is not None else None
        keys = ((array.namespace, member_name(array.name, i)) for i in range(wanted.count if wanted else 0))
        found = (self._member(key) for key in keys)
        return tuple(one for one in found if one is not None and one.array_uid == array.uid)

    def update(self, key: Key, job: JobView | None) -> frozenset[Key]:
        """Take in a job as it is in the cache, or that it is gone. Return its array if that has to be looked at
        again."""
        before = self._seen.get(key)
        stored = self._jobs.stored(key)
        if job is None or stored is None or not job.array:
            self._seen.pop(key, None)
            self._known.pop(key, None)
            return frozenset() if before is None else frozenset({before[0]})
        self._known[key] = (stored, member_of(job))
        now = ((job.namespace, job.array), job.status.phase or "")
        self._seen[key] = now
        return frozenset() if now == before else frozenset({now[0]})

    def _member(self, key: Key) -> Member | None:
        stored, known = self._jobs.stored(key), self._known.get(key)
        if stored is None:
            return None
        if known is not None and known[0].decides_as(stored):
            return known[1]
        job = self._jobs.get(key)
        member = None if job is None else member_of(job)
        self._known[key] = (stored, member)
        return member
