"""The jobs that an array has made."""

from synergy_api.names import member_name
from synergy_operator.edge.caches.objects import ObjectCache
from synergy_operator.views.job import JobView


def members_of(job: JobView, jobs: ObjectCache[JobView]) -> tuple[JobView, ...]:
    """The jobs that it made, by index; none if it is no array."""
    array = job.spec.array if job.spec is not None else None
    named = (jobs.get((job.namespace, member_name(job.name, i))) for i in range(array.count if array else 0))
    return tuple(one for one in named if one is not None and one.array_uid == job.uid)
