"""The job classes of the jobs that plans have met."""

from collections.abc import Hashable, Mapping
from weakref import WeakValueDictionary

from synergy_core.model.resources import Further, maximum, minimum
from synergy_core.model.snapshot import Job
from synergy_core.throughput.estimates import NO_SPEEDS
from synergy_core.throughput.job_class import JobClass


class JobClasses:
    """The job classes that plans have met. A class stays as long as one of its jobs is remembered.

    Two matrices are the same if they are one object. `further` are the cluster's further resources (`resources`).
    """

    def __init__(self, further: Further, tolerance: float, others: "JobClasses | None" = None) -> None:
        """`others` are of the same cluster as it is, or as it was: what they know of matrices is used here too."""
        self._further = further
        self._tolerance = tolerance
        self._others = others if others is not None and others.serves(further, tolerance) else None
        self._known: WeakValueDictionary[Hashable, JobClass] = WeakValueDictionary()

    def on_other_pools(self) -> list[JobClass]:
        """The nodes have changed, their further resources have not. Returns the classes: one that nobody keeps is
        forgotten."""
        kept = list(self._known.values())
        for one in kept:
            one.on_other_pools()
        return kept

    def serves(self, further: Further, tolerance: float) -> bool:
        """Whether it is for nodes with these further resources, and this tolerance."""
        return (self._further, self._tolerance) == (further, tolerance)

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
            known = None if self._others is None else self._others._known.get(key)
            found = self._known[key] = JobClass(job, self._further, self._tolerance, speeds, known)
        return found
