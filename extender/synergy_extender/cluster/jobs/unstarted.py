"""Runs that may start and have no bound pod: they hold GPUs without using them."""

import math
from collections.abc import Iterable, Mapping

from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.pod_index import PodIndex
from synergy_extender.cluster.run_state import open_run
from synergy_extender.cluster.views import JobView, Key

NOT_STARTED_SECONDS = 300.0
"""How long an admitted run may be without a bound pod while no other run gets one. The operator gives back what the API
server refuses within a minute, and a gang that no scheduler looks at within two. This bound is for an operator that is
away or stuck. It is long enough for one that is restarted or moves to another node."""
OVERLOOKED_SECONDS = 900.0
"""How long it may be without one while others get theirs: after thousands of jobs at once a run waits for its turn, and
giving it back would only be more work for an operator that is busy already."""

_NOTHING = AssumedBindings()


class Unstarted:
    """Since when each such run has been seen so by this leader, and each that waits for its room before that. A new
    leader counts anew."""

    def __init__(self) -> None:
        self._since: dict[Key, tuple[int, float]] = {}
        self._looked_at = self._begun_at = -math.inf
        """When runs were last looked at, and when a run was last seen to have begun."""
        self.granted_since: Mapping[Key, float] = {}
        """Unix time since which each job waits for its room."""
        self.freed_at = -math.inf
        """When a job that waited for its room was last seen to have got it."""
        self._begun: dict[Key, tuple[JobView, object]] = {}
        """Jobs at rest with the group of their pods, of which one is bound: as long as both stay the same."""

    @property
    def since(self) -> Mapping[Key, float]:
        """Unix time by job; that of the last run that began, if it was later and the run is not overlooked."""
        return {key: self._counts_from(since) for key, (_, since) in self._since.items()}

    def _counts_from(self, since: float) -> float:
        return since if self._looked_at - since > OVERLOOKED_SECONDS else max(since, self._begun_at)

    def forget(self) -> None:
        """Count anew, as when the clock has stepped."""
        self._since, self.granted_since = {}, {}
        self._begun_at = self.freed_at = -math.inf

    def note(self, jobs: Iterable[JobView], pods: PodIndex, assumed: AssumedBindings, now: float) -> None:
        """Note the state of the runs at `now`."""
        granted, self.granted_since = self.granted_since, {}
        seen: dict[Key, tuple[int, float]] = {}
        begun, self._begun = self._begun, {}
        for job in jobs:
            if job.key in granted and _is_admitted(job):
                self.freed_at = now
            if job.at_rest:
                group, earlier = pods.group_of(job.key), begun.get(job.key)
                if earlier is not None and earlier[0] is job and earlier[1] is group:
                    self._begun[job.key] = earlier
                    continue
                if any(pod.node for pod in pods.of_job(job.key)) and unstarted_run(job, pods, _NOTHING) is None:
                    self._begun[job.key] = (job, group)
                    continue
            elif waits_for_room(job):
                self.granted_since[job.key] = granted.get(job.key, now)
            run = unstarted_run(job, pods, assumed)
            if run is not None:
                known = self._since.get(job.key)
                seen[job.key] = known if known is not None and known[0] == run else (run, now)
        if any(pod.node for key in self._since.keys() - seen.keys() for pod in pods.of_job(key)):
            self._begun_at = now
        self._since, self._looked_at = seen, now


def unstarted_run(job: JobView, pods: PodIndex, assumed: AssumedBindings) -> int | None:
    """The number of the job's run if it is admitted and none of its pods is bound or on its way to a node."""
    allocation = open_run(job)
    if allocation is None or allocation.state != "Granted" or not allocation.admitted:
        return None
    bound = any(pod.node or assumed.node_of(pod.uid) for pod in pods.of_run(job.key, allocation.run))
    return None if bound else allocation.run


def waits_for_room(job: JobView) -> bool:
    """Whether the job was granted a place and not admitted to it yet."""
    allocation = job.status.allocation
    return allocation is not None and allocation.state == "Granted" and not allocation.admitted


def _is_admitted(job: JobView) -> bool:
    """Whether the job was admitted to the place that it was granted."""
    allocation = job.status.allocation
    return allocation is not None and allocation.admitted
