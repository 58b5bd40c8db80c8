"""All that one reconcile looks at."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from synergy_api.reasons import Reason
from synergy_operator.cluster import Cluster
from synergy_operator.config import Settings
from synergy_operator.known_profiles import KnownProfile
from synergy_operator.twins import Ask
from synergy_operator.views import BatchJobView, JobView, PodView
from synergy_operator.witness import Testimony


@dataclass(frozen=True, slots=True)
class RefusedSize:
    """A size that the API server refused to give a worker's first container, with its words and when (Unix time).
    `invalid` says that no such change can be made to a pod, whatever the amounts."""

    cpu_millis: int
    memory_bytes: int
    message: str
    at: float
    invalid: bool = False


@dataclass(frozen=True, slots=True)
class Refusals:
    """What the API server refused since the operator started: nothing here has to survive a restart, since the same
    request is refused again. `run` is the run that could not start, with the server's words and the `reason` that names
    what was refused; `invalid` says that the pod itself is wrong, so that it will be refused for ever; `resizes` are
    the sizes refused by pod uid."""

    run: int = 0
    message: str = ""
    invalid: bool = False
    reason: Reason = Reason.POD_REFUSED
    resizes: Mapping[str, RefusedSize] = field(default_factory=dict)


@dataclass(frozen=True)
class Observed:
    """One TrainingJob with what belongs to it: `pods` and `batch_jobs` are owned by it, of any run. `profiles` are all
    known profiles by fingerprint, `asking` the jobs that ask to be measured, this one among them, by fingerprint;
    `resizable` is false where the API server cannot resize pods; `partners` are the worker pods of the jobs that have
    its GPU too."""

    job: JobView
    cluster: Cluster
    settings: Settings
    pods: tuple[PodView, ...] = ()
    batch_jobs: tuple[BatchJobView, ...] = ()
    profiles: Mapping[str, tuple[KnownProfile, ...]] = field(default_factory=dict)
    asking: Mapping[str, Mapping[tuple[str, str], Ask]] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=Refusals)
    testimony: Testimony = field(default_factory=Testimony)
    resizable: bool = True
    partners: tuple[PodView, ...] = ()

    def pods_of(self, run: int) -> tuple[PodView, ...]:
        """The pods of a run, by rank."""
        return tuple(sorted((pod for pod in self.pods if pod.run == run), key=lambda pod: (pod.rank, pod.name)))

    def departed(self, run: int) -> tuple[PodView, ...]:
        """The pods of a run that ended and are gone, as far as they were seen, by rank."""
        gone = (pod for pod in self.testimony.departed.values() if pod.run == run)
        return tuple(sorted(gone, key=lambda pod: (pod.rank, pod.name)))

    def batch_jobs_of(self, run: int) -> tuple[BatchJobView, ...]:
        """The profile Jobs of a run, by name."""
        return tuple(sorted((job for job in self.batch_jobs if job.run == run), key=lambda job: job.name))
