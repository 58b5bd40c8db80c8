"""What is known of a job's pods and profile Jobs beyond the objects themselves, kept in memory.

Nothing here has to survive a restart: a complaint is heard again by asking again, and a pod whose last words are lost
counts as one that said nothing.
"""

from dataclasses import replace

from synergy_operator.views.metadata import Key
from synergy_operator.views.pod import PodView
from synergy_operator.views.pod_events import Complaint, Testimony


class Witness:
    """The testimony of every job."""

    def __init__(self) -> None:
        self._by_job: dict[Key, Testimony] = {}

    def of(self, job: Key) -> Testimony:
        """What is known of a job."""
        return self._by_job.get(job, Testimony())

    def hear(self, job: Key, uid: str, complaint: Complaint) -> None:
        """An object of the job has this to complain of."""
        old = self.of(job)
        self._by_job[job] = replace(old, complaints={**old.complaints, uid: complaint})

    def see_off(self, job: Key, pod: PodView) -> None:
        """A pod of the job is gone: its complaints are moot, how it ended is not."""
        old = self.of(job)
        complaints = {uid: complaint for uid, complaint in old.complaints.items() if uid != pod.uid}
        departed = {name: other for name, other in old.departed.items() if other.run >= pod.run}
        if pod.main.exit_code is not None and all(other.run <= pod.run for other in departed.values()):
            departed[pod.name] = pod
        self._keep(job, Testimony(complaints, departed))

    def forget(self, job: Key) -> None:
        """The job is gone."""
        self._by_job.pop(job, None)

    def _keep(self, job: Key, testimony: Testimony) -> None:
        if testimony.complaints or testimony.departed:
            self._by_job[job] = testimony
        else:
            self._by_job.pop(job, None)
