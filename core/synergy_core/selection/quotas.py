"""Quotas: what jobs may hold together, beside what the nodes have (ResourceQuotas of Kubernetes).

A job counts against the quotas that it draws on with its GPUs, its CPU and memory, its pods and its objects. During the
walk along the queue each job counts with the least CPU and memory that the mechanism may cut it down to. What is left
after the walk may go to jobs that grow.

A running job stays where it is although its quota is overdrawn, as in Kubernetes. No job enters then, and none grows.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Final

from synergy_core.model.placement import NodeAssignments
from synergy_core.model.pool import Pool, Reservation
from synergy_core.model.resources import Vector, times
from synergy_core.model.snapshot import Job, Quota, QuotaDraw, QuotaLimit
from synergy_core.selection.queue_entry import QueueEntry

Use = tuple[tuple[int, int], ...]
"""(index of a limit, amount): what a job counts with."""

_NOTHING: Final[Use] = ()
_ANY: Final = 2**62
_OF_VECTOR: Final[Mapping[str, int]] = {"cpu_millis": 0, "memory_bytes": 1}
"""Where a resource vector has what a limit counts."""


class Quotas:
    """The quotas of a snapshot, one limit after the other, for one plan. `jobs` are all that could draw on them."""

    def __init__(self, quotas: Sequence[Quota] = (), jobs: Iterable[Job] = ()) -> None:
        self.limits: list[tuple[str, QuotaLimit]] = [(quota.name, limit) for quota in quotas for limit in quota.limits]
        self.room = [limit.hard - limit.used for _, limit in self.limits]
        self._of: dict[str, list[int]] = {quota.name: [] for quota in quotas}
        for index, (name, _) in enumerate(self.limits):
            self._of[name].append(index)
        self._least: dict[tuple[str, str], Use] = {}
        self._wide = self._find_wide(jobs) if quotas else frozenset()

    def _find_wide(self, jobs: Iterable[Job]) -> frozenset[int]:
        """The limits of objects that have room for all jobs at once, however many pods each comes to have."""
        most = [0] * len(self.limits)
        for job in jobs:
            for draw in job.quotas:
                for index in self._of[draw.quota]:
                    resource = self.limits[index][1].resource
                    most[index] += draw.once.get(resource, 0) + draw.per_pod.get(resource, 0) * job.gpus
        return frozenset(
            index
            for index, (_, limit) in enumerate(self.limits)
            if limit.counts == "objects" and most[index] <= self.room[index]
        )

    def limits_of(self, draw: QuotaDraw) -> Iterable[tuple[int, QuotaLimit]]:
        """The limits of the quota that is drawn on, with their indices."""
        return ((index, self.limits[index][1]) for index in self._of.get(draw.quota, ()))

    def use(self, job: Job, pods: int, gpus: Mapping[str, int], amounts: Vector) -> Use:
        """What a job counts with: `gpus` as each kind of limit counts them, `amounts` of CPU and memory in all."""
        found: list[tuple[int, int]] = []
        for draw in job.quotas:
            for index, limit in self.limits_of(draw):
                amount = draw.once.get(limit.resource, 0) + draw.per_pod.get(limit.resource, 0) * pods
                place = _OF_VECTOR.get(limit.counts)
                amount += gpus.get(limit.counts, 0) if place is None else amounts[place]
                if amount > 0:
                    found.append((index, amount))
        return tuple(found)

    def of_reservation(self, entry: QueueEntry, pool: Pool, reservation: Reservation) -> Use:
        """What a job counts with that has this on the pool's nodes."""
        if not entry.job.quotas:
            return _NOTHING
        gpus: Counter[str] = Counter()
        for node, count, _ in reservation:
            gpus[pool.nodes[node].counted_as] += count * pool.nodes[node].devices_per_gpu
        amounts = tuple(sum(entries) for entries in zip(*(amounts for _, _, amounts in reservation), strict=True))
        return self.use(entry.job, _pods(entry.job, [count for _, count, _ in reservation]), gpus, amounts or (0, 0))

    def of_newcomer(self, entry: QueueEntry, pool: Pool, pods: int, per_gpu: Vector | None = None) -> Use:
        """What a job counts with on any nodes of the pool, with `per_gpu` of CPU and memory; by default cut down as
        far as its mechanism may."""
        job = entry.job
        if not job.quotas:
            return _NOTHING
        amounts = entry.on(pool).proportional_to(pool.best_share) if per_gpu is None else per_gpu
        gpus = {kind: most * job.gpus for kind, most in pool.most_devices.items()}
        return self.use(job, pods, gpus, times(amounts, job.gpus))

    def least_of_newcomer(self, entry: QueueEntry, pool: Pool) -> Use:
        """The same with as few pods as can be."""
        if not entry.job.quotas or not self.limits:
            return _NOTHING
        key = entry.name, pool.gpu_type
        if key not in self._least:
            self._least[key] = self.of_newcomer(entry, pool, fewest_pods(entry.job))
        return self._least[key]

    def pods_matter(self, job: Job) -> bool:
        """A limit that could run out counts the job's pods, and their number depends on its nodes."""
        if not job.quotas or job.gpus == 1 or job.gpus_per_worker == 1:
            return False
        return any(
            index not in self._wide and limit.resource in draw.per_pod
            for draw in job.quotas
            for index, limit in self.limits_of(draw)
        )

    def at(self, entry: QueueEntry, pool: Pool, assignments: NodeAssignments) -> Use:
        """The same with the pods that it has in this place."""
        if not entry.job.quotas:
            return _NOTHING
        if not entry.pods_matter:
            return self.least_of_newcomer(entry, pool)
        return self.of_newcomer(entry, pool, _pods(entry.job, [gpus for _, gpus in assignments]))

    def shut_out(self, entry: QueueEntry, pools: Sequence[Pool]) -> bool:
        """Whether its quotas have no room for it although no job of the snapshot held any of them."""
        if not entry.job.quotas:
            return False
        uses = [self.least_of_newcomer(entry, pool) for pool in pools if entry.may_use(pool)]
        return bool(uses) and all(any(amount > self.room[index] for index, amount in use) for use in uses)


NO_QUOTAS: Final = Quotas()


def fewest_pods(job: Job) -> int:
    """Pods of a job on the fewest possible nodes."""
    return 1 if job.gpus_per_worker is None else -(-job.gpus // job.gpus_per_worker)


def _pods(job: Job, on_nodes: Sequence[int]) -> int:
    size = job.gpus_per_worker
    return len(on_nodes) if size is None else sum(-(-gpus // size) for gpus in on_nodes)


class QuotaLedger:
    """What of the quotas is taken while one plan is made, by job. Jobs without quotas cost nothing."""

    def __init__(self, quotas: Quotas = NO_QUOTAS) -> None:
        self.quotas = quotas
        self.left = list(quotas.room)
        self.releasable = [0] * len(quotas.room)
        """What running jobs hold that may be displaced still."""
        self.full: dict[str, Mapping[str, str]] = {}
        """By job that waits for a quota: that quota's name and numbers."""
        self._taken: dict[str, Use] = {}
        self._more: dict[str, dict[int, int]] = {}
        """What placed jobs have beyond what they count with, by limit."""

    def copy(self) -> "QuotaLedger":
        """The same, to go on from separately."""
        other = copy(self)
        other.left, other._taken, other._more = list(self.left), dict(self._taken), dict(self._more)
        return other

    def become(self, other: "QuotaLedger") -> None:
        """Go on as the other, a copy, has gone on."""
        self.left, self._taken, self._more = other.left, other._taken, other._more

    # During the walk along the queue

    def fits(self, use: Use) -> bool:
        """Whether so much is left. Nothing of a resource fits even where that is overdrawn."""
        left = self.left
        return all(amount <= left[index] for index, amount in use)

    def take(self, entry: QueueEntry, use: Use) -> None:
        """Count a job, whether or not that fits."""
        if use:
            self._taken[entry.name] = use
            self._change(use, -1)

    def drop(self, entry: QueueEntry) -> None:
        """Count it no more."""
        if entry.job.quotas:
            self._change(self._taken.pop(entry.name, _NOTHING), 1)

    def count_releasable(self, entry: QueueEntry, sign: int) -> None:
        """A job that is counted may be displaced from now on, or may not any more."""
        if entry.job.quotas:
            for index, amount in self._taken.get(entry.name, _NOTHING):
                self.releasable[index] += sign * amount

    def could_fit(self, use: Use) -> bool:
        """Whether so much were left once all those had gone that may be displaced."""
        return all(amount <= self.left[index] + self.releasable[index] for index, amount in use)

    def would_help(self, victim: QueueEntry, use: Use) -> bool:
        """Whether a counted job holds some of what is lacking for this."""
        if not victim.job.quotas:
            return False
        lacking = {index for index, amount in use if amount > self.left[index]}
        return any(index in lacking for index, _ in self._taken.get(victim.name, _NOTHING))

    def note_full(self, entry: QueueEntry, use: Use) -> None:
        """Remember which limit keeps the job waiting: the one that lacks the largest part of what it needs."""
        lacking = [(1.0 - self.left[index] / amount, -index) for index, amount in use if amount > self.left[index]]
        if not lacking:
            return
        index = -max(lacking)[1]
        name, limit = self.quotas.limits[index]
        numbers = {"hard": limit.hard, "left": max(0, self.left[index]), "need": dict(use)[index]}
        self.full[entry.name] = {
            "quota": name,
            "resource": limit.resource,
            **{field: _shown(limit.counts, number) for field, number in numbers.items()},
        }

    # While CPU and memory are allocated

    def affords(self, entry: QueueEntry, pool: Pool, reservation: Reservation) -> bool:
        """Whether a job that is counted may have this on its nodes."""
        if not entry.job.quotas:
            return True
        now = self._more.get(entry.name, {})
        return all(
            more <= self.left[index] + now.get(index, 0) or more <= now.get(index, 0)
            for index, more in self._beyond(entry, pool, reservation).items()
        )

    def spare(self, entry: QueueEntry, pool: Pool, reservation: Reservation) -> tuple[int, int]:
        """How much more CPU and memory a job may have than it has on its nodes."""
        spare = [_ANY, _ANY]
        taken = dict(self._taken.get(entry.name, _NOTHING))
        now = dict(self.quotas.of_reservation(entry, pool, reservation))
        for index, have in now.items():
            place = _OF_VECTOR.get(self.quotas.limits[index][1].counts)
            if place is not None:
                unused = max(0, taken.get(index, 0) - have)
                spare[place] = min(spare[place], max(0, self.left[index]) + unused)
        return spare[0], spare[1]

    def assign(self, entry: QueueEntry, pool: Pool, reservation: Reservation) -> None:
        """Count what a placed job has beyond what it counts with already."""
        if entry.job.quotas:
            more = self._beyond(entry, pool, reservation)
            self._more[entry.name] = more
            self._change(more.items(), -1)

    def unassign(self, entry: QueueEntry) -> None:
        """Undo `assign`."""
        if entry.job.quotas:
            self._change(self._more.pop(entry.name, {}).items(), 1)

    def overdrawn(self, entry: QueueEntry) -> bool:
        """Whether a quota is overdrawn that a placed job counts against with CPU or memory."""
        return any(
            self.left[index] < 0 and self.quotas.limits[index][1].counts in _OF_VECTOR
            for index, _ in self._taken.get(entry.name, _NOTHING)
        )

    def _beyond(self, entry: QueueEntry, pool: Pool, reservation: Reservation) -> dict[int, int]:
        taken = dict(self._taken.get(entry.name, _NOTHING))
        return {
            index: amount - taken.get(index, 0)
            for index, amount in self.quotas.of_reservation(entry, pool, reservation)
            if amount > taken.get(index, 0)
        }

    def _change(self, use: Iterable[tuple[int, int]], sign: int) -> None:
        for index, amount in use:
            self.left[index] += sign * amount


def _shown(counts: str, amount: int) -> str:
    if counts == "cpu_millis":
        return f"{amount / 1000:g} CPU"
    return f"{amount / 2**30:.4g} GiB" if counts == "memory_bytes" else str(amount)
