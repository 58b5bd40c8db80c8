"""What the operator knows of a job's pods and profile Jobs beyond the objects themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from synergy_operator.views.pod import PodView


@dataclass(frozen=True, slots=True)
class PodWarning:
    """The newest warning event of an object.

    `reason` and `message` are empty if it has none. `read_at` is the Unix time of the read.
    """

    reason: str
    message: str
    read_at: float


@dataclass(frozen=True, slots=True)
class PodEvents:
    """Warnings and pods of one job that no longer exist.

    `warnings` has the newest warning event by the uid of its pod or Job. By name, `deleted` has the pods of the newest
    run that ended and no longer exist, and `vanished` those that were deleted before a kubelet reported their end.
    """

    warnings: Mapping[str, PodWarning] = field(default_factory=dict)
    deleted: Mapping[str, PodView] = field(default_factory=dict)
    vanished: Mapping[str, PodView] = field(default_factory=dict)
