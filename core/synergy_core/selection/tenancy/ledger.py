"""What tenants hold while one plan is made.

A job is *decided* once it is certain that it runs. The place of a running job that the walk has not come to is *kept*.
Caps and reserves count what is decided: of a tenant's jobs the higher in the queue come first, and a running job that
then lies beyond a cap loses its place.
"""

from collections import ChainMap, defaultdict
from collections.abc import Mapping

from synergy_core.model.reasons import Reason
from synergy_core.model.tenant_tree import Path, TenantTree
from synergy_core.selection.queue_entry import QueueEntry

BORROWS = -1
"""The stage in which jobs may run beyond guarantees; before it, stage `d` is for guarantees of the tenants `d` levels
below a root."""

Refusal = tuple[Reason, Mapping[str, str]]
"""Why a tenant may not have more, and the numbers of it."""


class TenantLedger:
    """GPUs of each tenant by GPU type, its subtree's together."""

    def __init__(self, tree: TenantTree) -> None:
        self.tree = tree
        self.stage = BORROWS
        self._decided: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._kept: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._types: dict[str, str] = {}
        """GPU type of each decided job."""
        self._by_guarantee: set[str] = set()
        """Jobs that were decided in a stage for guarantees."""
        self._reserved: dict[str, int] = {}
        """GPUs of each type that are lent to nobody and not claimed yet, once they have been asked for."""
        self._claimed: dict[str, dict[Path, tuple[int, int]]] = defaultdict(dict)
        """By GPU type and tenant: GPUs that it has by guarantees, and the lowest position of its jobs there."""

    # Counting

    def keep(self, entry: QueueEntry, gpu_type: str, sign: int) -> None:
        """The place of a running job is kept (1), or not any more (-1)."""
        for index in self.tree.nodes(entry.job):
            self._kept[gpu_type][index] += sign * entry.gpus

    def decide(self, entry: QueueEntry, gpu_type: str) -> None:
        """A job runs for certain."""
        if entry.name in self._types:
            return
        self._types[entry.name] = gpu_type
        if self.reserved(gpu_type):
            self._reserved[gpu_type] += self._change(entry, gpu_type)
        for index in self.tree.nodes(entry.job):
            self._decided[gpu_type][index] += entry.gpus
        if self.stage != BORROWS:
            self._by_guarantee.add(entry.name)
            path = self.tree.paths(entry.job)[0]
            gpus, rank = self._claimed[gpu_type].get(path, (0, -1))
            self._claimed[gpu_type][path] = gpus + entry.gpus, max(rank, entry.rank)

    @property
    def decided(self) -> int:
        """How many jobs run for certain."""
        return len(self._types)

    def is_decided(self, name: str) -> bool:
        """Whether the job of this name runs for certain."""
        return name in self._types

    def is_by_guarantee(self, entry: QueueEntry, gpu_type: str) -> bool:
        """Whether the job runs by a guarantee: it was served by one, or all that a tenant above it has is within its
        guarantee."""
        if not self.is_decided(entry.name):
            return False
        path = self.tree.paths(entry.job)[0]
        within = any(self.held(index, gpu_type) <= self.tree.guarantee(index, gpu_type) for index in path)
        return within or entry.name in self._by_guarantee

    def is_below(self, entry: QueueEntry, index: int) -> bool:
        """Whether the job counts against the tenant."""
        return index in self.tree.nodes(entry.job)

    def held(self, index: int, gpu_type: str) -> int:
        """What a tenant has for certain."""
        return self._decided[gpu_type][index]

    # What is allowed

    def allows(self, entry: QueueEntry, gpu_type: str, left: int) -> bool:
        """Whether the job may run on this type in the present stage; `left` GPUs are not decided."""
        if self.stage != BORROWS and not self._is_guaranteed(entry, gpu_type):
            return False
        if self._capped_by(entry, gpu_type) is not None:
            return False
        is_own = self.stage != BORROWS and all(self.guarantor(path) == path[-1] for path in self.tree.paths(entry.job))
        return is_own or self._is_lent(entry, gpu_type, left)

    def could_guarantee(self, entry: QueueEntry, gpu_type: str) -> int | None:
        """The lowest tenant above the job whose guarantee has room for it; None if none has, or a cap forbids it."""
        path = self.tree.paths(entry.job)[0]
        if self.is_capped(entry, gpu_type):
            return None
        fits = (i for i in reversed(path) if self.held(i, gpu_type) + entry.gpus <= self.tree.guarantee(i, gpu_type))
        return next(fits, None)

    def room(self, index: int) -> int:
        """GPUs of a guarantee that are not claimed yet, of the type where these are most."""
        guarantee = self.tree.tenants[index].guarantee
        return max((most - self.held(index, gpu_type) for gpu_type, most in guarantee.items()), default=0)

    def guarantor(self, path: Path) -> int | None:
        """The tenant whose guarantee counts in the present stage."""
        return path[self.stage] if 0 <= self.stage < len(path) else None

    def is_capped(self, entry: QueueEntry, gpu_type: str) -> bool:
        """Whether a cap of its tenant, or of one above, leaves no room for the job."""
        return self._capped_by(entry, gpu_type) is not None

    def takes_by_guarantee(self, newcomer: QueueEntry, victim: QueueEntry) -> bool:
        """Whether in the present stage the newcomer is served by a guarantee that is not the victim's, too."""
        guarantor = self.guarantor(self.tree.paths(newcomer.job)[0])
        return self.stage != BORROWS and guarantor not in self.tree.paths(victim.job)[0]

    def _is_guaranteed(self, entry: QueueEntry, gpu_type: str) -> bool:
        guarantors = {self.guarantor(path) for path in self.tree.paths(entry.job)}
        return all(
            index is not None and self.held(index, gpu_type) + entry.gpus <= self.tree.guarantee(index, gpu_type)
            for index in guarantors
        )

    def _capped_by(self, entry: QueueEntry, gpu_type: str) -> int | None:
        """The tenant whose cap leaves no room."""
        for path in self.tree.paths(entry.job):
            for index in path:
                if self.held(index, gpu_type) + entry.gpus > self.tree.cap(index, gpu_type):
                    return index
        return None

    def _is_lent(self, entry: QueueEntry, gpu_type: str, left: int) -> bool:
        """The job leaves what others do not lend; where already too little is left, no less of it than before."""
        before = self.reserved(gpu_type)
        if before == 0:
            return True
        lacking = before + self._change(entry, gpu_type) - (left - entry.gpus)
        return lacking <= max(0, before - left)

    def reserved(self, gpu_type: str) -> int:
        """GPUs that are lent to nobody and not claimed yet."""
        if gpu_type not in self._reserved:
            self._reserved[gpu_type] = self.tree.reserved(gpu_type, self._decided[gpu_type])
        return self._reserved[gpu_type]

    def _change(self, entry: QueueEntry, gpu_type: str) -> int:
        """How many more of these there are once the job has its GPUs: 0 or fewer."""
        held, roots = self._decided[gpu_type], self.tree.roots(entry.job)
        after = ChainMap({index: held[index] + entry.gpus for index in self.tree.nodes(entry.job)}, held)
        return self.tree.reserved(gpu_type, after, roots) - self.tree.reserved(gpu_type, held, roots)

    # Who borrows most

    def borrowed(self, path: Path, gpu_type: str) -> tuple[float, ...]:
        """What a tenant and those above it have for certain beyond their guarantees, per weight, the root first."""
        held = self._decided[gpu_type]
        return tuple(self._beyond(index, gpu_type, held[index]) for index in path)

    def borrowed_now(self, entry: QueueEntry, gpu_type: str, newcomer: QueueEntry) -> tuple[float, ...]:
        """The same with kept places, once the newcomer had entered."""
        more = self.tree.nodes(newcomer.job)
        decided, kept = self._decided[gpu_type], self._kept[gpu_type]
        return tuple(
            self._beyond(index, gpu_type, decided[index] + kept[index] + (newcomer.gpus if index in more else 0))
            for index in self.tree.paths(entry.job)[0]
        )

    def _beyond(self, index: int, gpu_type: str, held: int) -> float:
        return max(0, held - self.tree.guarantee(index, gpu_type)) / self.tree.weight(index)

    # Why a job waits

    def why(self, entry: QueueEntry, left: Mapping[str, int]) -> Refusal | None:
        """Why the job waits for tenants: a cap or a guarantee on each type, or somebody below it had a guarantee.

        `left` has the GPUs that are not decided, by type that the job may use.
        """
        types = list(left)
        refusals = [self._refusal(entry, gpu_type, left[gpu_type]) for gpu_type in types]
        if refusals and None not in refusals:
            return refusals[0]
        passed = (one for one, refusal in zip(types, refusals, strict=True) if refusal is None)
        return next((self._guarantees_first(entry, one) for one in passed if self._was_passed(entry, one)), None)

    def _was_passed(self, entry: QueueEntry, gpu_type: str) -> bool:
        """It would borrow, and a job below it in the queue had a guarantee."""
        own = self.tree.paths(entry.job)[0]
        if self.held(own[-1], gpu_type) + entry.gpus <= self.tree.guarantee(own[-1], gpu_type):
            return False
        return any(rank > entry.rank for path, (_, rank) in self._claimed[gpu_type].items() if path != own)

    def _refusal(self, entry: QueueEntry, gpu_type: str, left: int) -> Refusal | None:
        index = self._capped_by(entry, gpu_type)
        if index is None:
            return None if self._is_lent(entry, gpu_type, left) else self._guarantees_first(entry, gpu_type)
        tenant = self.tree.tenants[index]
        facts = {"borrowing": f"{tenant.borrowing.get(gpu_type, 0)}", **self.facts(entry, index, gpu_type)}
        if tenant.limit.get(gpu_type) == self.tree.cap(index, gpu_type):
            return Reason.TENANT_LIMIT, {**facts, "limit": f"{tenant.limit[gpu_type]}"}
        return Reason.BORROWING_LIMIT, facts

    def _guarantees_first(self, entry: QueueEntry, gpu_type: str) -> Refusal:
        own = self.tree.paths(entry.job)[0]
        claimed = sum(gpus for path, (gpus, _) in self._claimed[gpu_type].items() if path != own)
        facts = self.facts(entry, self.tree.named(own), gpu_type)
        return Reason.GUARANTEES_FIRST, {**facts, "kept": f"{claimed + self.reserved(gpu_type)}"}

    def facts(self, entry: QueueEntry, index: int, gpu_type: str) -> dict[str, str]:
        """The numbers of a message about a tenant and a job."""
        return {
            "tenant": self.tree.tenants[index].name or "(none)",
            "gpu_type": gpu_type,
            "guarantee": f"{self.tree.guarantee(index, gpu_type)}",
            "held": f"{self.held(index, gpu_type)}",
            "need": f"{entry.gpus}",
        }
