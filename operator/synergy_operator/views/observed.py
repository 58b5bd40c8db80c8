"""Everything that one reconcile reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from synergy_operator.views.batch_job import BatchJobView
from synergy_operator.views.cluster import ClusterView
from synergy_operator.views.job import JobView, Member
from synergy_operator.views.known_profile import KnownProfile
from synergy_operator.views.owners.view import OwnerView
from synergy_operator.views.pod import PodView
from synergy_operator.views.pod_events import PodEvents
from synergy_operator.views.profile_candidate import ProfileCandidate
from synergy_operator.views.refusals import Refusals
from synergy_operator.views.settings import WorkerSettings
from synergy_operator.views.stored_job import Reference


@dataclass(frozen=True)
class Observed:
    """One TrainingJob with all objects and facts that its reconcile depends on.

    - `pods` and `batch_jobs` are those that the job owns, of any run.
    - `profiles` are all known profiles, by fingerprint.
    - `candidates` are the jobs that ask to be measured, by fingerprint. The job itself may be among them.
    - `resizable` is false if the API server cannot resize pods.
    - `partners` are the worker pods of the jobs that share its GPU.
    - `references` are the other jobs of its namespace that are references, by name.
    - `named_phases` are the phases of the jobs that it waits for, by name; empty for a job that has none yet.
    - `cycle` are the names of jobs that wait for each other with it, from it back to itself; empty if there is none.
    - `owner` is the object that the job starts and stops (spec.managed), `unclaimed` its pods that no run has yet.
    - `members` are the jobs that it made as an array, by index.
    - `told_in` is the number of seconds after which a new reason for waiting may be written.
    """

    job: JobView
    cluster: ClusterView
    settings: WorkerSettings
    pods: tuple[PodView, ...] = ()
    batch_jobs: tuple[BatchJobView, ...] = ()
    profiles: Mapping[str, tuple[KnownProfile, ...]] = field(default_factory=dict)
    candidates: Mapping[str, Mapping[tuple[str, str], ProfileCandidate]] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=Refusals)
    pod_events: PodEvents = field(default_factory=PodEvents)
    resizable: bool = True
    partners: tuple[PodView, ...] = ()
    told_in: float = 0.0
    references: tuple[Reference, ...] = ()
    members: tuple[Member, ...] = ()
    named_phases: Mapping[str, str] = field(default_factory=dict)
    cycle: tuple[str, ...] = ()
    owner: OwnerView | None = None
    unclaimed: tuple[PodView, ...] = ()

    def pods_of(self, run: int) -> tuple[PodView, ...]:
        """The pods of a run, by rank."""
        return tuple(sorted((pod for pod in self.pods if pod.run == run), key=lambda pod: (pod.rank, pod.name)))

    def deleted_pods(self, run: int) -> tuple[PodView, ...]:
        """The pods of a run that ended and no longer exist, by rank. Pods whose end the operator did not see are
        missing."""
        gone = (pod for pod in self.pod_events.deleted.values() if pod.run == run)
        return tuple(sorted(gone, key=lambda pod: (pod.rank, pod.name)))

    def vanished_pods(self, run: int) -> tuple[PodView, ...]:
        """The deleted pods of a run whose kubelet reported no end before the pod was gone."""
        return tuple(pod for pod in self.pod_events.vanished.values() if pod.run == run)

    def batch_jobs_of(self, run: int) -> tuple[BatchJobView, ...]:
        """The profile Jobs of a run, by name."""
        return tuple(sorted((job for job in self.batch_jobs if job.run == run), key=lambda job: job.name))
