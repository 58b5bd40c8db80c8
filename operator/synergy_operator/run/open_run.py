"""An open training run with what one look at it shows."""

from dataclasses import dataclass
from functools import cached_property

from synergy_api.allocation import Allocation
from synergy_api.sizes import SizeLimits
from synergy_api.timestamps import format_time
from synergy_api.training_job import ServiceStatus, TrainingJobSpec
from synergy_operator.pods.gang import GangWorker, gang_workers
from synergy_operator.run.end import started_at
from synergy_operator.run.resize import Resizing, resizes
from synergy_operator.run.size_limits import bounds_of
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView


@dataclass(frozen=True)
class OpenRun:
    observed: Observed
    spec: TrainingJobSpec
    allocation: Allocation
    now: float
    wanted: bool

    @property
    def number(self) -> int:
        return self.allocation.run

    @cached_property
    def pods(self) -> tuple[PodView, ...]:
        return self.observed.pods_of(self.number)

    @cached_property
    def deleted_pods(self) -> tuple[PodView, ...]:
        return self.observed.deleted_pods(self.number)

    @cached_property
    def gang(self) -> tuple[GangWorker, ...]:
        return gang_workers(self.observed.job.name, self.allocation, self.spec.gpus_per_worker)

    @cached_property
    def size_limits(self) -> SizeLimits | None:
        """What its workers can be resized to."""
        return bounds_of(self.observed, self.gang, self.pods, self.now, run=self.number, gpus=self.spec.gpus)

    @cached_property
    def sizes(self) -> Resizing:
        """What brings its workers to the planned sizes."""
        return resizes(self.gang, self.pods, self.size_limits, self.spec.gpus)

    @cached_property
    def service(self) -> ServiceStatus:
        """The books, with the run's start once its workers show it."""
        books = self.observed.job.status.service or ServiceStatus()
        if books.running_since is not None or books.run != self.number:
            return books
        since = started_at(self.pods, len(self.gang))
        if since is None:
            return books
        update = {"running_since": format_time(since), "running_gpu_type": self.allocation.gpu_type}
        return books.model_copy(update=update)
