"""What is known of a job's pods and profile Jobs beyond the objects themselves, kept in memory.

Nothing here has to survive a restart: a complaint is heard again by asking again, and a pod whose last words are lost
counts as one that said nothing.
"""

from dataclasses import replace

from synergy_operator.views.metadata import Key
from synergy_operator.views.pod import PodView
from synergy_operator.views.pod_events import PodEvents, PodWarning


class PodEventCache:
    """The testimony of every job."""

    def __init__(self) -> None:
        self._by_job: dict[Key, PodEvents] = {}

    def of(self, job: Key) -> PodEvents:
        """What is known of a job."""
        return self._by_job.get(job, PodEvents())

    def record(self, job: Key, uid: str, warning: PodWarning) -> None:
        """An object of the job has this to complain of."""
        old = self.of(job)
        self._by_job[job] = replace(old, warnings={**old.warnings, uid: warning})

    def pod_deleted(self, job: Key, pod: PodView) -> None:
        """A pod of the job is gone: its complaints are moot, how it ended is not."""
        old = self.of(job)
        warnings = {uid: warning for uid, warning in old.warnings.items() if uid != pod.uid}
        deleted = {name: other for name, other in old.deleted.items() if other.run >= pod.run}
        if pod.main.exit_code is not None and all(other.run <= pod.run for other in deleted.values()):
            deleted[pod.name] = pod
        self._keep(job, PodEvents(warnings, deleted))

    def forget(self, job: Key) -> None:
        """The job is gone."""
        self._by_job.pop(job, None)

    def _keep(self, job: Key, pod_events: PodEvents) -> None:
        if pod_events.warnings or pod_events.deleted:
            self._by_job[job] = pod_events
        else:
            self._by_job.pop(job, None)
