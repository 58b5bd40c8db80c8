"""The job classes of the jobs that plans have met."""

from collections.abc import Hashable, Mapping
from weakref import WeakValueDictionary

from synergy_core.model.resources import Further, maximum, minimum
from synergy_core.model.snapshot import Job
from synergy_core.throughput.estimates import NO_SPEEDS
from synergy_core.throughput.job_class import JobClass


class JobClasses:
    """The job classes that plans on the same pools have met. A class stays as long as one of its jobs is remembered.

    Two matrices are the same if they are one object. `further` are the cluster's further resources (`resources`).
    """

    def __init__(self, further: Further, tolerance: float) -> None:
        self._further = further
        self._tolerance = tolerance
        self._known: WeakValueDictionary[Hashable, JobClass] = WeakValueDictionary()

    def of(self, job: Job, speeds: Mapping[str, float] = NO_SPEEDS) -> JobClass:
        """The job's class; `speeds` are those on types without a matrix."""
        key = (
            job.gpus,
            minimum(job, self._further),
            maximum(job, self._further),
            job.purpose,
            job.gpu_types,
            id(job.profiles),  # a class holds its profiles, so no other profiles can get their id
            tuple(sorted(speeds.items())),
        )
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = JobClass(job, self._further, self._tolerance, speeds)
        return found
