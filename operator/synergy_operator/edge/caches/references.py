"""Reference jobs: those beside which new jobs of their namespace may be measured."""

from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key


class ReferenceJobs:
    """All reference jobs, by namespace."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, JobView]] = {}

    def update(self, key: Key, job: JobView | None) -> None:
        """Take over what a job is now; None if it is gone."""
        namespace, name = key
        jobs = self._of.setdefault(namespace, {})
        if job is not None and job.spec is not None and job.spec.sharing.reference and not job.deleting:
            jobs[name] = job
        else:
            jobs.pop(name, None)
        if not jobs:
            del self._of[namespace]

    def beside(self, key: Key) -> tuple[JobView, ...]:
        """The other references of a job's namespace, by name."""
        namespace, name = key
        found = self._of.get(namespace, {})
        return tuple(found[other] for other in sorted(found) if other != name)
