"""Warnings of pods and profile Jobs, and pods that ended and no longer exist, kept in memory.

A restart may lose them. Warnings are read again. A pod whose termination message is lost counts as one without a
message.
"""

from collections.abc import Mapping
from dataclasses import replace

from synergy_operator.views.metadata import Key
from synergy_operator.views.pod import PodView
from synergy_operator.views.pod_events import PodEvents, PodWarning


class PodEventCache:
    """The pod events of all jobs."""

    def __init__(self) -> None:
        self._by_job: dict[Key, PodEvents] = {}

    def of(self, job: Key) -> PodEvents:
        """The pod events of a job."""
        return self._by_job.get(job, PodEvents())

    def asked(self, job: Key, uid: str, now: float) -> None:
        """The newest warning of an object of the job is being read: until then, the one before counts."""
        old = self.of(job).warnings.get(uid)
        self._record(job, uid, PodWarning("", "", now) if old is None else replace(old, read_at=now))

    def answer(self, job: Key, uid: str, reason: str, message: str, now: float) -> bool:
        """Record the newest warning of an object, with an empty reason if it has none. Returns whether it differs from
        the one before. If the job or the pod is gone, nothing is recorded."""
        old = self.of(job).warnings.get(uid)
        if old is None:
            return False
        self._record(job, uid, PodWarning(reason, message, now))
        return (reason, message) != (old.reason, old.message)

    def _record(self, job: Key, uid: str, warning: PodWarning) -> None:
        old = self.of(job)
        self._by_job[job] = replace(old, warnings={**old.warnings, uid: warning})

    def pod_deleted(self, job: Key, pod: PodView) -> None:
        """A pod of the job no longer exists. Its warnings are dropped. The pod is kept if it is of the newest run, and
        if its end is known or was at least asked for."""
        old = self.of(job)
        warnings = {uid: warning for uid, warning in old.warnings.items() if uid != pod.uid}
        deleted, vanished = (_of_run(known, pod.run) for known in (old.deleted, old.vanished))
        if all(other.run <= pod.run for other in (*deleted.values(), *vanished.values())):
            if pod.main.exit_code is not None:
                deleted[pod.name] = pod
            elif pod.deleting:
                vanished[pod.name] = pod
        self._keep(job, PodEvents(warnings, deleted, vanished))

    def forget(self, job: Key) -> None:
        """The job no longer exists."""
        self._by_job.pop(job, None)

    def _keep(self, job: Key, pod_events: PodEvents) -> None:
        if pod_events.warnings or pod_events.deleted or pod_events.vanished:
            self._by_job[job] = pod_events
        else:
            self._by_job.pop(job, None)


def _of_run(pods: Mapping[str, PodView], run: int) -> dict[str, PodView]:
    """Those of the run, or of a newer one."""
    return {name: pod for name, pod in pods.items() if pod.run >= run}
