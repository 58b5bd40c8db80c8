"""An open training run, with what one reconcile sees of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from synergy_api.parts.allocation import Allocation
from synergy_api.parts.service import ServiceStatus
from synergy_api.parts.sizes import SizeLimits
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_api.timestamps import format_time
from synergy_operator.pods.gang import GangWorker, gang_workers
from synergy_operator.run.end import started_at
from synergy_operator.run.resize import Resizing, resizes
from synergy_operator.run.size_limits import bounds_of
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView


def newest_by_rank(pods: Iterable[PodView]) -> tuple[PodView, ...]:
    """One pod for each rank: one that may still run, else the newest."""
    found: dict[int, PodView] = {}
    for pod in sorted(pods, key=lambda pod: (not pod.terminal, pod.created_at)):
        found[pod.rank] = pod
    return tuple(found[rank] for rank in sorted(found))


@dataclass(frozen=True)
class OpenRun:
    """The open run. `wanted` is false if the job must not start."""

    observed: Observed
    spec: TrainingJobSpec
    allocation: Allocation
    now: float
    wanted: bool

    @property
    def number(self) -> int:
        """The number of the run."""
        return self.allocation.run

    @cached_property
    def pods(self) -> tuple[PodView, ...]:
        """Its pods, by rank. Of a managed object, one for each rank."""
        found = self.observed.pods_of(self.number)
        return found if self.spec.managed is None else newest_by_rank(found)

    @cached_property
    def deleted_pods(self) -> tuple[PodView, ...]:
        """Its pods that ended and no longer exist, by rank."""
        return self.observed.deleted_pods(self.number)

    @cached_property
    def gang(self) -> tuple[GangWorker, ...]:
        """The workers that its allocation plans."""
        return gang_workers(self.observed.job.name, self.allocation, self.spec.gpus_per_worker)

    @property
    def size(self) -> int:
        """The number of workers. A managed Job that is nearly complete has fewer pods than ranks."""
        owner = self.observed.owner
        return len(self.gang) if owner is None else min(len(self.gang), owner.expected)

    @cached_property
    def size_limits(self) -> SizeLimits | None:
        """The sizes that its workers can be resized to."""
        return bounds_of(self.observed, self.gang, self.pods, self.now, run=self.number, gpus=self.spec.gpus)

    @cached_property
    def sizes(self) -> Resizing:
        """The resizes that its workers need."""
        return resizes(self.gang, self.pods, self.size_limits, self.spec.gpus)

    @cached_property
    def service(self) -> ServiceStatus:
        """Its accounting, with the start time as soon as the pods show it."""
        accounting = self.observed.job.status.service or ServiceStatus()
        if accounting.running_since is not None or accounting.run != self.number:
            return accounting
        since = started_at(self.pods, self.size)
        if since is None:
            return accounting
        update = {"running_since": format_time(since), "running_gpu_type": self.allocation.gpu_type}
        return accounting.model_copy(update=update)
