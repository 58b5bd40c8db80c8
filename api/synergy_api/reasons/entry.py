"""What the list says of each reason."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

EventKind = Literal["Normal", "Warning"]


class ReasonPlace(StrEnum):
    """Where a reason is read; an event may come beside it."""

    VALID = "TrainingJob, `Valid`"
    PROFILED = "TrainingJob, `Profiled`"
    SPEEDS = "TrainingJob, `SpeedsMeasured`"
    RUNNING = "TrainingJob, `Running`"
    RESOURCES = "TrainingJob, `ResourcesAsPlanned`"
    ON_TIME = "TrainingJob, `OnTime`"
    FINISHED = "TrainingJob, `Finished`"
    OFFERED = "TrainingJob, `Offered`"
    LAST_RUN = "TrainingJob, `status.service.last`"
    QUEUE = "TrainingJob, `status.queue`"
    EVENT = "event only"
    POOL = "GPUPool, `Valid`"
    POOL_NODES = "GPUPool, `NodesReliable`"
    POOL_GROWTH = "GPUPool, `Autoscaling`"
    POLICY = "SchedulingPolicy, `Valid`"
    TENANT = "Tenant, `Valid`"
    TENANT_TREE = "Tenant, `InTree`"
    TENANT_GUARANTEE = "Tenant, `GuaranteeKept`"
    NODE = "Node"
    PROFILE = "ThroughputProfile, `Valid`"


@dataclass(frozen=True, slots=True)
class Entry:
    """One reason. A message is `says`, then `change` where there is something to change, both with facts in their
    `{names}`; `means` is for the list alone and may be left out where `says` explains itself. `event` is the kind of
    event that carries it, None if none does."""

    places: tuple[ReasonPlace, ...]
    says: str
    change: str = ""
    means: str = ""
    event: EventKind | None = None

    @property
    def text(self) -> str:
        """The whole message, before the facts are filled in."""
        return f"{self.says}: {self.change}" if self.change else self.says
