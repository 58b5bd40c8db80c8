"""An open profile run, with what one reconcile sees of it."""

from dataclasses import dataclass
from functools import cached_property

from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_api.parts.service import ServiceStatus
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_operator.profile.harvest import result_of
from synergy_operator.profile.series import ProfileState
from synergy_operator.profile.size import ProfileSize, profile_size
from synergy_operator.views.batch_job import BatchJobView
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView


@dataclass(frozen=True)
class OpenSeries:
    """The open profile run. `wanted` is false if the job must not be measured now."""

    observed: Observed
    spec: TrainingJobSpec
    allocation: Allocation
    profile_state: ProfileState
    now: float
    wanted: bool

    @property
    def number(self) -> int:
        """The number of the run."""
        return self.allocation.run

    @cached_property
    def service(self) -> ServiceStatus:
        """The accounting of the job."""
        return self.observed.job.status.service or ServiceStatus()

    @cached_property
    def pods(self) -> tuple[PodView, ...]:
        """The pods of the run, by rank."""
        return self.observed.pods_of(self.number)

    @cached_property
    def jobs(self) -> tuple[BatchJobView, ...]:
        """The batch Jobs of the run, by name."""
        return self.observed.batch_jobs_of(self.number)

    @cached_property
    def share(self) -> NodeShare | None:
        """The granted share of a node; None if there is none."""
        return self.allocation.workers[0] if self.allocation.workers else None

    @cached_property
    def size(self) -> ProfileSize | None:
        """The profile pod's size; None without a grant, or without nodes of its GPU type."""
        nodes = self.observed.cluster.by_type.get(self.allocation.gpu_type, ())
        if self.share is None or not nodes:
            return None
        return profile_size(self.spec, nodes, self.observed.cluster.profiling, self.share)

    def pod_of(self, job: BatchJobView) -> PodView | None:
        """The pod of a batch Job, if there is one."""
        return next((pod for pod in self.pods if pod.batch_job == job.name), None)

    @property
    def found(self) -> tuple[tuple[BatchJobView, PodView | None], ...]:
        """The batch Jobs with their pods."""
        return tuple((job, self.pod_of(job)) for job in self.jobs)

    @cached_property
    def holding(self) -> tuple[PodView, ...]:
        """The pods that hold resources."""
        return tuple(pod for pod in self.pods if not pod.terminal)

    def is_read(self, job: BatchJobView) -> bool:
        """What the Job found will be in the status: of a pair's Jobs, once both have ended."""
        if job.pair is None:
            return result_of(job, self.pod_of(job)) is not None
        kind, reference = self.allocation.gpu_type, job.pair.reference
        return any((one.gpu_type, one.reference) == (kind, reference) for one in self.profile_state.profile.pairs)

    @cached_property
    def active(self) -> tuple[BatchJobView, ...]:
        """Jobs without a result whose pod runs or may still be created."""
        return tuple(job for job in self.jobs if not job.finished and result_of(job, self.pod_of(job)) is None)
