"""A job in the scheduling queue of one plan: its position, and what the policy and the plan say about it."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.placement import NodeAssignments
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Placement
from synergy_core.selection.job_info import JobInfo
from synergy_core.throughput.levels import Tier

_NONE: Final[Mapping[str, frozenset[int]]] = MappingProxyType({})
_ANYWHERE: Final[Mapping[str, Placement]] = MappingProxyType({})
_NEAR: Final[Mapping[str, Tier]] = MappingProxyType({})


class QueueEntry:
    """One job's entry in one scheduling queue. Nothing in it changes while the plan is made.

    * `keeps_its_gpus`: the job may not be preempted once it runs.
    * `rank`: its position in the queue, 0 the first.
    * `stays_for_now`: no other job may displace it in this plan, because the policy preempts none or its run is still
      protected.
    * `is_protected`: the latter. Not even a guarantee of another tenant displaces it.
    * `goes_first`: the policy promoted it because it waited too long. Nodes are reserved for it (`node_reservation`).
    * `least_run_s`: seconds for which its run will be protected from preemption once it has started.
    * `reserved`: nodes, by GPU type and as indices, that are reserved for other jobs. It must not start there.
    * `pods_matter`: a limit that could run out counts its pods, so it cannot take just any free GPUs.
    * `wants_shared`: GPU types on which it prefers nodes with shared GPUs; on others it prefers the rest. None: no
      preference.
    * `goes_by_price`: the policy prefers an idle GPU to one of a type that it did not give the job.
    * `types`: GPU types that the policy gives it this round, the first choice first. None: those on which it is
      fastest.
    * `placements`: how the policy wants its GPUs placed this round, by GPU type; on others the job itself decides.
    * `nearness`: how near the nodes are on which it wants them packed, by GPU type.
    """

    __slots__ = (
        "goes_by_price",
        "goes_first",
        "gpus",
        "held",
        "info",
        "is_profile_run",
        "is_protected",
        "job",
        "keeps_its_gpus",
        "least_run_s",
        "name",
        "nearness",
        "on",
        "placements",
        "pods_matter",
        "rank",
        "reserved",
        "stays_for_now",
        "types",
        "wants_shared",
    )

    def __init__(
        self,
        info: JobInfo,
        rank: int = -1,
        *,
        stays_for_now: bool = False,
        is_protected: bool = False,
        goes_first: bool = False,
        least_run_s: float = 0.0,
        reserved: Mapping[str, frozenset[int]] = _NONE,
        pods_matter: bool = False,
        wants_shared: frozenset[str] | None = None,
        goes_by_price: bool = False,
        types: tuple[str, ...] | None = None,
        placements: Mapping[str, Placement] = _ANYWHERE,
        nearness: Mapping[str, Tier] = _NEAR,
    ) -> None:
        self.info: Final = info
        # what is asked for most, without a step through `info`
        self.job: Final = info.job
        self.name: Final = info.name
        self.gpus: Final = info.gpus
        self.held: Final = info.held
        self.on: Final = info.on
        self.is_profile_run: Final = info.is_profile_run
        self.keeps_its_gpus: Final = info.keeps_its_gpus
        self.rank: Final = rank
        self.stays_for_now: Final = stays_for_now
        self.is_protected: Final = is_protected
        self.goes_first: Final = goes_first
        self.least_run_s: Final = least_run_s
        self.reserved: Final = reserved
        self.pods_matter: Final = pods_matter
        self.wants_shared: Final = wants_shared
        self.goes_by_price: Final = goes_by_price
        self.types: Final = types
        self.placements: Final = placements
        self.nearness: Final = nearness

    def __repr__(self) -> str:
        return f"QueueEntry({self.name})"

    @property
    def may_be_displaced(self) -> bool:
        """A job higher in the queue may take its GPUs."""
        return not (self.stays_for_now or self.keeps_its_gpus)

    @property
    def is_ahead(self) -> bool:
        """It comes before all that the policy orders: it is promoted, or a profile run."""
        return self.goes_first or self.is_profile_run

    @property
    def may_give_way(self) -> bool:
        """A guarantee may take its GPUs."""
        return not (self.is_protected or self.keeps_its_gpus)

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
            return self.info.nodes_can_be_used and self.is_packed(held.assignments, held.pool)
        return self.info.nodes_can_be_used

    def place(self, pool: Pool) -> Placement:
        """How its GPUs are placed on the pool. A profile run is measured on one node where one is large enough."""
        if self.info.is_profile_run and self.info.gpus <= max(pool.gpus):
            return "consolidate"
        wanted = self.wanted(pool)
        tier = self.nearness.get(pool.gpu_type)
        if wanted == "pack" and self.info.fewest_nodes(pool) == 1 and (tier is None or tier.fewest_nodes):
            return "consolidate"
        return wanted

    def is_packed(self, assignments: NodeAssignments, pool: Pool) -> bool:
        """Whether these nodes are few and near enough where it is packed."""
        tier, fewest = self.nearness.get(pool.gpu_type), self.info.fewest_nodes(pool)
        return len(assignments) <= fewest if tier is None else tier.has(assignments, pool, fewest)

    def wanted(self, pool: Pool) -> Placement:
        """How the policy wants its GPUs placed, else the job itself."""
        return self.placements.get(pool.gpu_type, self.info.placement)

    def barred_from(self, reserved: Mapping[str, frozenset[int]]) -> "QueueEntry":
        """The entry, which must not start on these nodes."""
        return self._with(reserved, self.placements, self.nearness) if reserved else self

    def without_reservations(self) -> "QueueEntry":
        """The entry as if no node were reserved for others."""
        return self._with(_NONE, self.placements, self.nearness)

    def spread_anywhere(self) -> "QueueEntry":
        """The entry with its GPUs wherever there is room, on the GPU types that the policy had a wish for."""
        return self._with(self.reserved, dict.fromkeys(self.placements, "auto"), _NEAR)

    def _with(
        self,
        reserved: Mapping[str, frozenset[int]],
        placements: Mapping[str, Placement],
        nearness: Mapping[str, Tier],
    ) -> "QueueEntry":
        return QueueEntry(
            self.info,
            self.rank,
            stays_for_now=self.stays_for_now,
            is_protected=self.is_protected,
            goes_first=self.goes_first,
            least_run_s=self.least_run_s,
            reserved=reserved,
            pods_matter=self.pods_matter,
            wants_shared=self.wants_shared,
            goes_by_price=self.goes_by_price,
            types=self.types,
            placements=placements,
            nearness=nearness,
        )


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
