"""What the API server refused, by job, until its next run or its end. Kept in memory: see `observed.Refusals`."""

from dataclasses import replace

from synergy_operator.cache import Key
from synergy_operator.observed import Refusals, RefusedSize

_NONE = Refusals()


class RefusalLog:
    """Refusals of pods, Jobs and resizes."""

    def __init__(self) -> None:
        self._by_job: dict[Key, Refusals] = {}

    def of(self, job: Key) -> Refusals:
        """What was refused for a job."""
        return self._by_job.get(job, _NONE)

    def refuse_run(self, job: Key, run: int, message: str, *, invalid: bool) -> None:
        """A pod or Job of a run cannot be made: not now (quota, policy), or never because it is `invalid`."""
        self._by_job[job] = replace(self.of(job), run=run, message=message, invalid=invalid)

    def refuse_resize(self, job: Key, pod_uid: str, size: RefusedSize) -> None:
        """A pod cannot have a size."""
        old = self.of(job)
        self._by_job[job] = replace(old, resizes={**old.resizes, pod_uid: size})

    def forget(self, job: Key) -> None:
        """The job is gone."""
        self._by_job.pop(job, None)

    def forget_pod(self, job: Key, pod_uid: str) -> None:
        """The pod is gone."""
        old = self._by_job.get(job)
        if old is not None and pod_uid in old.resizes:
            rest = {uid: size for uid, size in old.resizes.items() if uid != pod_uid}
            self._by_job[job] = replace(old, resizes=rest)
