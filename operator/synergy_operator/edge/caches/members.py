"""The jobs that an array has made, and which arrays news of them concern."""

from synergy_api.names import member_name
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key


def members_of(job: JobView, jobs: JobCache) -> tuple[JobView, ...]:
    """The jobs that it made, by index; none if it is no array."""
    array = job.spec.array if job.spec is not None else None
    named = (jobs.get((job.namespace, member_name(job.name, i))) for i in range(array.count if array else 0))
    return tuple(one for one in named if one is not None and one.array_uid == job.uid)


class MemberPhases:
    """The last known phase of each member, from the watch or from an answer to a write of the operator."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[Key, str]] = {}

    def update(self, key: Key, job: JobView | None) -> Key | None:
        """Take in a job, or that it is gone. Return its array if that has to be looked at again."""
        before = self._seen.get(key)
        if job is None or not job.array:
            self._seen.pop(key, None)
            return before[0] if before is not None else None
        now = ((job.namespace, job.array), job.status.phase or "")
        self._seen[key] = now
        return now[0] if now != before else None
