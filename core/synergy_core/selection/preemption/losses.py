"""Which running jobs lose their places in a walk along the queue, and for which job: told by the walk itself."""

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Why a running job loses its place."""

    GUARANTEE = "guarantee"
    """Another job gets its GPUs by a guarantee of its tenant, or they are kept for one."""
    LIMIT = "limit"
    """Its tenant may not hold so much."""
    ORDER = "order"
    """Another job comes before it: by the policy, by its class, or because its tenant borrows less."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A place that a running job loses."""

    cause: Cause
    by: str | None = None
    """Name of the planned job that it is taken for; None if it is taken for none."""
