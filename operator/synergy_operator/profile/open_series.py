"""An open profile run with what one look at it shows."""

from dataclasses import dataclass
from functools import cached_property

from synergy_api.allocation import Allocation, NodeShare
from synergy_api.training_job import ServiceStatus, TrainingJobSpec
from synergy_operator.profile.harvest import result_of
from synergy_operator.profile.series import (
    ProfileState,
)
from synergy_operator.profile.size import ProfileSize, profile_size
from synergy_operator.views.batch_job import BatchJobView
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView


@dataclass(frozen=True)
class OpenSeries:
    observed: Observed
    spec: TrainingJobSpec
    allocation: Allocation
    profile_state: ProfileState
    now: float
    wanted: bool

    @property
    def number(self) -> int:
        return self.allocation.run

    @cached_property
    def service(self) -> ServiceStatus:
        return self.observed.job.status.service or ServiceStatus()

    @cached_property
    def pods(self) -> tuple[PodView, ...]:
        return self.observed.pods_of(self.number)

    @cached_property
    def jobs(self) -> tuple[BatchJobView, ...]:
        return self.observed.batch_jobs_of(self.number)

    @cached_property
    def share(self) -> NodeShare | None:
        return self.allocation.workers[0] if self.allocation.workers else None

    @cached_property
    def size(self) -> ProfileSize | None:
        nodes = self.observed.cluster.by_type.get(self.allocation.gpu_type, ())
        if self.share is None or not nodes:
            return None
        return profile_size(self.spec, nodes, self.observed.cluster.profiling, self.share)

    def pod_of(self, job: BatchJobView) -> PodView | None:
        return next((pod for pod in self.pods if pod.batch_job == job.name), None)

    @property
    def found(self) -> tuple[tuple[BatchJobView, PodView | None], ...]:
        """The Jobs with their pods."""
        return tuple((job, self.pod_of(job)) for job in self.jobs)

    @cached_property
    def holding(self) -> tuple[PodView, ...]:
        return tuple(pod for pod in self.pods if not pod.terminal)

    @cached_property
    def active(self) -> tuple[BatchJobView, ...]:
        """Jobs that have or may still get a pod without a result."""
        return tuple(job for job in self.jobs if not job.finished and result_of(job, self.pod_of(job)) is None)
