"""A job in the scheduling queue of one plan: its position, and what the policy and the plan say about it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Job, Placement
from synergy_core.selection.job_info import Held, JobInfo
from synergy_core.throughput.job_class import ClassOnPool


@dataclass(frozen=True, slots=True, eq=False)
class QueueEntry:
    """One job's entry in one scheduling queue. Nothing in it changes while the plan is made."""

    info: JobInfo
    rank: int = -1
    """Its position in the queue, 0 the first."""
    stays_for_now: bool = False
    """No other job may displace it in this plan: the policy preempts nobody, or the run is still protected."""
    goes_first: bool = False
    """The policy promoted it because it waited too long. Nodes are reserved for it (`node_reservation`)."""
    least_run_s: float = 0.0
    """Seconds for which its run will be protected from preemption once it has started."""
    reserved: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Nodes, by GPU type and as indices, that are reserved for other jobs: it must not start there."""
    pods_matter: bool = False
    """A limit that could run out counts its pods, so it cannot take just any free GPUs."""
    wants_shared: frozenset[str] | None = None
    """GPU types on which it prefers nodes with shared GPUs; on others it prefers the rest. None: no preference."""
    goes_by_price: bool = False
    """The policy prefers an idle GPU to one of a type that it did not give the job."""
    types: tuple[str, ...] | None = None
    """GPU types that the policy gives it this round, the first choice first; None: those on which it is fastest."""
    placements: Mapping[str, Placement] = field(default_factory=dict)
    """How the policy wants its GPUs placed this round, by GPU type; on others as the job itself says."""

    def __repr__(self) -> str:
        return f"QueueEntry({self.name})"

    @property
    def job(self) -> Job:
        """The job."""
        return self.info.job

    @property
    def name(self) -> str:
        """The job's name."""
        return self.info.name

    @property
    def gpus(self) -> int:
        """GPUs that the job needs."""
        return self.info.gpus

    @property
    def held(self) -> Held | None:
        """What it holds, if it runs on nodes of the plan."""
        return self.info.held

    @property
    def on(self) -> Callable[[Pool], ClassOnPool]:
        """What the job may have on a pool."""
        return self.info.on

    @property
    def is_profile_run(self) -> bool:
        """The job runs to be measured."""
        return self.info.is_profile_run

    @property
    def keeps_its_gpus(self) -> bool:
        """The job may not be preempted once it runs."""
        return self.info.keeps_its_gpus

    @property
    def may_be_displaced(self) -> bool:
        """A job higher in the queue may take its GPUs."""
        return not (self.stays_for_now or self.info.keeps_its_gpus)

    def may_use(self, pool: Pool) -> bool:
        """Whether the job allows the pool's GPU type."""
        return self.info.job_class.may_use(pool)

    def open_nodes(self, pool: Pool) -> NDArray[np.bool_]:
        """Which of the pool's nodes the job may be placed on."""
        return self.info.open_nodes(pool)

    @property
    def place_is_there(self) -> bool:
        """Whether the job could go on where it runs: all its nodes exist, can be used, and have a GPU type that the
        policy gives it; and they are few enough where the policy wants its GPUs packed."""
        held = self.info.held
        if self.types is not None and held is not None and held.pool.gpu_type not in self.types:
            return False
        if held is not None and self.placements.get(held.pool.gpu_type) == "pack":
            return self.info.nodes_can_be_used and len(held.seats) <= self.info.fewest_nodes(held.pool)
        return self.info.nodes_can_be_used

    def place(self, pool: Pool) -> Placement:
        """How its GPUs are placed on the pool. A profile run is measured on one node where one is large enough."""
        if self.info.is_profile_run and self.info.gpus <= max(pool.gpus):
            return "consolidate"
        wanted = self.wanted(pool)
        if wanted == "pack" and self.info.fewest_nodes(pool) == 1:
            return "consolidate"
        return wanted

    def wanted(self, pool: Pool) -> Placement:
        """How the policy wants its GPUs placed, else the job itself."""
        return self.placements.get(pool.gpu_type, self.info.placement)

    def barred_from(self, reserved: Mapping[str, frozenset[int]]) -> "QueueEntry":
        """The entry, which must not start on these nodes."""
        return replace(self, reserved=reserved) if reserved else self

    def without_reservations(self) -> "QueueEntry":
        """The entry as if no node were reserved for others."""
        return replace(self, reserved={})

    def spread_anywhere(self) -> "QueueEntry":
        """The entry with its GPUs wherever there is room, on the GPU types that the policy had a wish for."""
        return replace(self, placements=dict.fromkeys(self.placements, "auto"))


def fastest_first(entry: QueueEntry, pools: Iterable[Pool]) -> list[Pool]:
    """The pools that an entry may use, in the policy's order.

    Where the policy gives no GPU types, the one where the job is fastest at its proportional share comes first; pools
    of unknown speed are in the order of their names.
    """
    allowed = [pool for pool in pools if entry.may_use(pool)]
    if entry.types is not None:
        given = {gpu_type: place for place, gpu_type in enumerate(entry.types)}
        return sorted((pool for pool in allowed if pool.gpu_type in given), key=lambda pool: given[pool.gpu_type])
    if len(allowed) > 1:
        allowed.sort(key=lambda pool: (-entry.on(pool).proportional_steps_per_s(), pool.gpu_type))
    return allowed
