"""What jobs of one class may have beside their GPUs: the same GPUs, purpose, bounds and matrices make the same
class."""

from collections.abc import Iterable, Mapping

from synergy_core.model.pool import Pool
from synergy_core.model.resources import Further
from synergy_core.model.snapshot import Job
from synergy_core.throughput.class_bounds import bounds_of
from synergy_core.throughput.class_on_pool import ClassOnPool
from synergy_core.throughput.estimates import NO_SPEEDS


class JobClass:
    """Jobs that differ in nothing that decides what they may have."""

    __slots__ = (
        "__weakref__",
        "_before",
        "_best_speed",
        "_fastest_types",
        "_share_speeds",
        "_terms",
        "bounds",
        "gpu_types",
    )

    def __init__(
        self,
        job: Job,
        further: Further,
        tolerance: float,
        speeds: Mapping[str, float] = NO_SPEEDS,
        known: "JobClass | None" = None,
    ) -> None:
        """`known` is the same class on other nodes."""
        self.bounds = bounds_of(job, further, tolerance, speeds)
        self.gpu_types = job.gpu_types
        self._before: dict[str, ClassOnPool] = {}
        """On pools that are there no more."""
        self._terms: dict[str, ClassOnPool] = {} if known is None else dict(known._terms)
        self.on_other_pools()

    def on_other_pools(self) -> None:
        """The nodes have changed: of what is known on the earlier pools, keep what does not depend on the nodes."""
        self._before, self._terms = self._terms, {}
        self._best_speed: float | None = None
        self._fastest_types: tuple[str, ...] | None = None
        self._share_speeds: dict[bool, Mapping[str, float]] = {}

    def may_use(self, pool: Pool) -> bool:
        """Whether the pool's GPU type is one of those that are allowed."""
        return not self.gpu_types or pool.gpu_type in self.gpu_types

    def on(self, pool: Pool) -> ClassOnPool:
        """What they may have on this pool."""
        terms = self._terms.get(pool.gpu_type)
        if terms is None:
            before = self._before.pop(pool.gpu_type, None)
            terms = self._terms[pool.gpu_type] = ClassOnPool(self.bounds, pool, before)
        return terms

    def best_speed(self, pools: Iterable[Pool]) -> float:
        """Speed at the proportional share on the GPU type where they are fastest; 0 where it is not known."""
        if self._best_speed is None:
            speeds = [self.on(pool).proportional_steps_per_s() for pool in pools if self.may_use(pool)]
            self._best_speed = max(speeds, default=0.0)
        return self._best_speed

    def fastest_types(self, pools: Iterable[Pool]) -> tuple[str, ...]:
        """The GPU types that are allowed, the one where they are fastest at the proportional share first."""
        if self._fastest_types is None:
            allowed = (pool for pool in pools if self.may_use(pool))
            by_speed = sorted((-self.on(pool).proportional_steps_per_s(), pool.gpu_type) for pool in allowed)
            self._fastest_types = tuple(gpu_type for _, gpu_type in by_speed)
        return self._fastest_types

    def share_speeds(self, pools: Iterable[Pool], *, on_one_node: bool) -> Mapping[str, float]:
        """Speed at the proportional share on each GPU type that could hold them, on one node or on any; 0 where it is
        not known. Always the same mapping."""
        found = self._share_speeds.get(on_one_node)
        if found is None:
            found = self._share_speeds[on_one_node] = {
                pool.gpu_type: self.on(pool).proportional_steps_per_s()
                for pool in pools
                if self.may_use(pool) and self.bounds.gpus <= pool.open_gpus[1 if on_one_node else 0]
            }
        return found
