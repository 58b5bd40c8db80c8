"""What tenants had over a simulation: GPU time that was guaranteed, used, borrowed and lent."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from synergy_core.model.snapshot import Tenant
from synergy_simulator.engine.run import Run
from synergy_simulator.inputs.clusters import Cluster

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class TenantHours:
    """GPU-hours of a tenant and those below it. Of shared GPUs, a job has its part."""

    name: str
    guaranteed: float
    used: float
    borrowed: float
    """Beyond the guarantee of a GPU type."""
    lent: float
    """Of its guarantee, what others had."""


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """Figures of all tenants. A root tenant is entitled to its guarantee and, of the GPUs that nobody is guaranteed, to
    a part by its weight. It claims as much of that as its jobs ask for."""

    tenants: tuple[TenantHours, ...]
    share_error: float
    """Part of all claims that was not met, of GPU time."""
    jain: float
    """Jain's index over the parts of their claims that root tenants had: 1 where these are equal."""


class TenantUsage:
    """Integrals over time, by tenant."""

    def __init__(
        self, tenants: Sequence[Tenant], cluster: Cluster, running: Mapping[str, Run], active: Mapping[str, Run]
    ) -> None:
        """`running` and `active` are the jobs at any moment."""
        self._running, self._active = running, active
        self._tenants = {tenant.name: tenant for tenant in tenants}
        self._gpus = {gpu_type: cluster.gpus_of(gpu_type) for gpu_type in cluster.gpu_types}
        self._sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._binds = any(tenant.binds for tenant in tenants)

    def count(self, passed: float) -> None:
        """Count so many seconds in which nothing changed."""
        if not self._binds:
            return
        held, wanted = self._held(self._running.values()), self._wanted(self._active.values())
        self._count_lent(held, passed)
        for name in {*self._tenants, *held}:
            sums = self._sums[name]
            for gpu_type in self._gpus:
                have, guarantee = held[name][gpu_type], self._guarantee(name, gpu_type)
                sums["used"] += passed * have
                sums["borrowed"] += passed * max(0.0, have - guarantee)
                sums["guaranteed"] += passed * guarantee
        roots = self._roots(wanted)
        for name in roots:
            claim = min(wanted[name], self._entitled(name, roots))
            self._sums[name]["claimed"] += passed * claim
            self._sums[name]["met"] += passed * min(claim, sum(held[name].values()))

    def figures(self) -> TenantFigures | None:
        """What came of it; None where no tenant has a guarantee or a limit."""
        if not self._binds:
            return None
        rows = tuple(
            TenantHours(name, *(self._sums[name][one] / _HOUR_S for one in ("guaranteed", "used", "borrowed", "lent")))
            for name in sorted({*self._tenants, *self._sums})
        )
        claims = [(one["claimed"], one["met"]) for one in self._sums.values() if one["claimed"] > 0]
        parts = [met / claimed for claimed, met in claims]
        claimed = sum(claim for claim, _ in claims)
        squares = sum(part * part for part in parts)
        return TenantFigures(
            rows,
            share_error=1.0 - sum(met for _, met in claims) / claimed if claimed else 0.0,
            jain=sum(parts) ** 2 / (len(parts) * squares) if squares else 1.0,
        )

    def _above(self, name: str) -> list[str]:
        found = [name]
        while name in self._tenants and self._tenants[name].parent is not None:
            name = self._tenants[name].parent or ""
            found.append(name)
        return found

    def _guarantee(self, name: str, gpu_type: str) -> int:
        return self._tenants[name].guarantee.get(gpu_type, 0) if name in self._tenants else 0

    def _held(self, running: Iterable[Run]) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for run in running:
            allocation = run.job.running
            if allocation is not None:
                gpus = run.task.gpus / (1 + len(allocation.partners))
                for name in self._above(run.task.tenant):
                    found[name][allocation.gpu_type] += gpus
        return found

    def _wanted(self, active: Iterable[Run]) -> dict[str, float]:
        found: dict[str, float] = defaultdict(float)
        for run in active:
            for name in self._above(run.task.tenant):
                found[name] += run.task.gpus
        return found

    def _roots(self, wanted: Mapping[str, float]) -> list[str]:
        return [name for name in sorted({*self._tenants, *wanted}) if len(self._above(name)) == 1]

    def _entitled(self, name: str, roots: Iterable[str]) -> float:
        """Its guarantees, and its part of what nobody is guaranteed."""
        free = sum(self._gpus.values()) - sum(self._guarantee(root, one) for root in roots for one in self._gpus)
        weights = {root: self._tenants[root].weight if root in self._tenants else 1.0 for root in roots}
        own = sum(self._guarantee(name, one) for one in self._gpus)
        return own + max(0.0, free) * weights[name] / sum(weights.values())

    def _count_lent(self, held: Mapping[str, Mapping[str, float]], passed: float) -> None:
        """What roots hold beyond guarantees comes first from GPUs that nobody is guaranteed, then from lenders."""
        roots = [name for name in {*self._tenants, *held} if len(self._above(name)) == 1]
        for gpu_type, gpus in self._gpus.items():
            have = {name: held[name][gpu_type] if name in held else 0.0 for name in {*self._tenants, *roots}}
            beyond = sum(max(0.0, have[name] - self._guarantee(name, gpu_type)) for name in roots)
            nobodys = max(0, gpus - sum(self._guarantee(name, gpu_type) for name in roots))
            unused = {name: max(0.0, self._guarantee(name, gpu_type) - have[name]) for name in have}
            spare = sum(unused[name] for name in roots)
            part = min(1.0, max(0.0, beyond - nobodys) / spare) if spare else 0.0
            for name in roots:
                self._sums[name]["lent"] += passed * unused[name] * part
