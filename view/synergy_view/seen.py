"""A TrainingJob as its user's client gets it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from synergy_api.parts.relations.clusters import managed_elsewhere
from synergy_api.resources.training_job import FINISHED, Phase, TrainingJobSpec, TrainingJobStatus
from synergy_api.timestamps import parse_time

Object = Mapping[str, Any]
_HOLDING: Final[frozenset[Phase]] = frozenset({"Starting", "Running", "Yielding"})


@dataclass(frozen=True, slots=True)
class SeenJob:
    """One TrainingJob. Times are in seconds since the epoch."""

    namespace: str
    name: str
    uid: str
    created_s: float
    deleting: bool
    spec: TrainingJobSpec
    status: TrainingJobStatus

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME, as statuses name other jobs."""
        return f"{self.namespace}/{self.name}"

    @property
    def phase(self) -> Phase:
        """Its state; Pending until the operator has looked at it."""
        return self.status.phase or "Pending"

    @property
    def finished(self) -> bool:
        """Whether it has succeeded or failed."""
        return self.phase in FINISHED

    @property
    def is_array(self) -> bool:
        """Whether it only makes other jobs, and never holds GPUs itself."""
        return self.spec.array is not None

    @property
    def is_elsewhere(self) -> bool:
        """Whether it runs in a worker cluster: it holds nothing of this cluster."""
        return managed_elsewhere({"managedBy": self.spec.managed_by})

    @property
    def cluster(self) -> str:
        """The worker cluster that has it; empty if none has it, or if it runs in this cluster."""
        return self.status.cluster.name if self.status.cluster is not None else ""

    @property
    def gpus_held(self) -> int:
        """GPUs that it holds now, here or in a worker cluster; 0 while it waits."""
        if self.is_elsewhere:
            return self.spec.gpus if self.phase in _HOLDING else 0
        allocation = self.status.allocation
        if allocation is None or allocation.state == "Released":
            return 0
        return sum(share.gpus for share in allocation.workers)

    @property
    def gpu_type(self) -> str:
        """GPU type of what it holds; empty while it waits."""
        return self.status.allocation.gpu_type if self.gpus_held and self.status.allocation is not None else ""

    @property
    def tenant(self) -> str:
        """The tenant that its spec names; its namespace where it names none."""
        return self.spec.tenant or self.namespace


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A TrainingJob that this version cannot read: the cluster's kube-synergy is newer or older."""

    full_name: str
    problem: str


def read(item: Object) -> SeenJob:
    """The TrainingJob of an API object. Raises ValueError naming the first field that cannot be read."""
    metadata = item["metadata"]
    try:
        return SeenJob(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            created_s=parse_time(metadata["creationTimestamp"]),
            deleting="deletionTimestamp" in metadata,
            spec=TrainingJobSpec.model_validate(item["spec"]),
            status=TrainingJobStatus.model_validate(item.get("status") or {}),
        )
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{path}: {first['msg']}") from None


def read_all(items: Iterable[Object]) -> tuple[list[SeenJob], list[Unreadable]]:
    """All that can be read, and what cannot."""
    jobs, unreadable = [], []
    for item in items:
        try:
            jobs.append(read(item))
        except ValueError as error:
            name = f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
            unreadable.append(Unreadable(name, str(error)))
    return jobs, unreadable
