"""Finds waiting jobs that could run on a GPU type other than their home: what the parts' plans cannot see."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from synergy_core.model.answer import Plan
from synergy_core.model.reasons import Reason
from synergy_core.model.snapshot import Job, Snapshot

_LIMITS = frozenset({Reason.TENANT_LIMIT, Reason.BORROWING_LIMIT, Reason.GUARANTEES_FIRST, Reason.QUOTA_FULL})
"""Reasons of jobs that wait while GPUs are free."""


def envious(
    snapshot: Snapshot,
    plan: Plan,
    order: Mapping[str, int],
    choices: Mapping[str, Sequence[str]],
    homes: Mapping[str, str],
    *,
    left: Mapping[str, str],
    gives_way: Callable[[Job], bool],
) -> dict[str, list[str]]:
    """By job, the types beside its home where so many GPUs as it needs are idle, or held by jobs below it in the queue
    that may be displaced. Whether they are on the right nodes only a plan tells. `left` are running jobs whose home is
    another type, with the type that they run on: they want that back."""
    there = {one.job for one in plan.allocations}
    types_of = {name: choices[name] for name in homes if name not in there}
    types_of |= {name: [kind] for name, kind in left.items() if name in there}
    if not types_of:
        return {}
    pools = _Pools(snapshot, plan, order, gives_way)
    found: dict[str, list[str]] = {}
    for name, wanted in types_of.items():
        rank, gpus = order[name], pools.jobs[name].gpus
        types = [kind for kind in wanted if kind != homes[name] and pools.could_get(kind, rank) >= gpus]
        if types:
            found[name] = types
    return found


def is_limited(reason: str) -> bool:
    """Whether a job waits for a limit rather than for GPUs."""
    return reason in _LIMITS


class _Pools:
    """What jobs could get on each GPU type, once a plan is made."""

    def __init__(
        self, snapshot: Snapshot, plan: Plan, order: Mapping[str, int], gives_way: Callable[[Job], bool]
    ) -> None:
        self.jobs = {job.name: job for job in snapshot.jobs}
        self._idle: dict[str, int] = {}
        open_ = {node.name for node in snapshot.nodes if node.schedulable}
        for node in snapshot.nodes:
            gpus = max(0, node.gpus - node.gpus_used) if node.schedulable else 0
            self._idle[node.gpu_type] = self._idle.get(node.gpu_type, 0) + gpus
        held: dict[str, list[tuple[int, int]]] = {kind: [] for kind in self._idle}
        for one in plan.allocations:
            if one.gpu_type in held:
                gpus = sum(share.gpus for share in one.workers if share.node in open_)
                self._idle[one.gpu_type] -= gpus
                if gives_way(self.jobs[one.job]):
                    held[one.gpu_type].append((order[one.job], gpus))
        self._ranks: dict[str, list[int]] = {}
        self._below: dict[str, list[int]] = {}
        for kind, theirs in held.items():
            theirs.sort()
            sums = [0]
            for _, gpus in reversed(theirs):
                sums.append(sums[-1] + gpus)
            self._ranks[kind] = [rank for rank, _ in theirs]
            self._below[kind] = sums[::-1]

    def could_get(self, kind: str, rank: int) -> int:
        """GPUs of the type that are idle, or held by jobs below the rank that may be displaced."""
        return self._idle[kind] + self._below[kind][bisect_right(self._ranks[kind], rank)]
