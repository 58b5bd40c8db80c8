"""Which worker cluster a job is offered to. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from synergy_core.model.snapshot import Job, Snapshot

_SOONER_S: Final = 60.0
_SOONER_PART: Final = 0.25


@dataclass(frozen=True, slots=True, order=True)
class Prospect:
    """When a job would start and end in a cluster: seconds since the epoch, infinite where no end is in sight.

    The order is that of the choice: the soonest start, then the soonest end, then the cluster's name.
    """

    start_s: float
    finish_s: float
    cluster: str


def soonest(prospects: Iterable[Prospect]) -> Prospect | None:
    """The best one; None if the job starts nowhere."""
    return min((one for one in prospects if one.start_s < inf), default=None)


def worth_moving(present: Prospect | None, best: Prospect | None, now: float) -> bool:
    """Whether a job that waits in a cluster is offered to another: it must start there sooner by a minute, and by a
    quarter of the time that is left. Forecasts change, and a job that moves loses its place in the queue."""
    if best is None:
        return False
    if present is None or present.start_s == inf:
        return True
    gain = present.start_s - best.start_s
    return best.cluster != present.cluster and gain > max(_SOONER_S, _SOONER_PART * (present.start_s - now))


def least_wanted(clusters: Mapping[str, tuple[Job, Snapshot]], offered: Mapping[str, int]) -> str:
    """The cluster for a job of whose start nothing is known there: the one whose jobs want the smallest multiple of the
    GPUs that the job may use. Empty if none has enough GPUs for it.

    `clusters` has the job as each cluster's planner would see it, and the cluster without it. `offered` are the GPUs of
    jobs that the clusters got meanwhile.
    """
    wanted: dict[str, float] = {}
    for name, (job, snapshot) in clusters.items():
        usable = sum(node.gpus for node in snapshot.nodes if not job.gpu_types or node.gpu_type in job.gpu_types)
        if usable >= job.gpus:
            wanted[name] = (offered.get(name, 0) + sum(one.gpus for one in snapshot.jobs)) / usable
    return min(wanted, key=lambda name: (wanted[name], name), default="")
