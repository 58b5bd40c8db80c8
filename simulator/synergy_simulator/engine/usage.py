"""What of the cluster is in use: integrals over time for the metrics, a series for the plots."""

from dataclasses import dataclass, field

from synergy_core.model.snapshot import Allocation
from synergy_simulator.engine.tenancy import TenantUsage
from synergy_simulator.inputs.clusters import Cluster
from synergy_simulator.inputs.profiles import GIB


@dataclass(frozen=True, slots=True)
class UsageMoment:
    """From `at` on."""

    at: float
    gpus: int
    cpu_millis: int
    memory_bytes: int
    waiting: int


@dataclass(slots=True)
class Usage:
    """Amounts in use now, and their integrals until `until` (amount x seconds)."""

    cluster: Cluster
    until: float = 0.0
    gpus: float = 0
    """A shared GPU counts in equal parts for the jobs that share it."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    wanted_gpus: int = 0
    """GPUs of all jobs that are there, running or not."""
    cost_per_s: float = 0.0
    gpu_s: float = 0.0
    cpu_milli_s: float = 0.0
    memory_byte_s: float = 0.0
    cost: float = 0.0
    contention_s: float = 0.0
    """Integral of how many jobs there are for each GPU, 1 where there are fewer than GPUs."""
    series: list[UsageMoment] = field(default_factory=list)
    tenants: TenantUsage | None = None
    """What tenants have of it, if anybody counts that."""
    _prices: dict[str, float] = field(init=False)
    _capacity: tuple[float, float, float] = field(init=False)

    def __post_init__(self) -> None:
        pools = self.cluster.pools
        self._prices = {pool.gpu_type: pool.cost_per_hour / 3600.0 for pool in pools}
        self._capacity = (
            float(self.cluster.gpus),
            sum(pool.nodes * pool.cpus_per_node for pool in pools) * 1000.0,
            sum(pool.nodes * pool.memory_gib_per_node for pool in pools) * GIB,
        )

    def advance(self, now: float) -> None:
        """Count until `now`."""
        passed = now - self.until
        if passed > 0:
            self.gpu_s += passed * self.gpus
            self.cpu_milli_s += passed * self.cpu_millis
            self.memory_byte_s += passed * self.memory_bytes
            self.cost += passed * self.cost_per_s
            self.contention_s += passed * max(1.0, self.wanted_gpus / self._capacity[0])
            if self.tenants is not None:
                self.tenants.count(passed)
            self.until = now

    def add(self, allocation: Allocation, sign: int) -> None:
        """Take (1) or give back (-1) an allocation."""
        for worker in allocation.workers:
            gpus = worker.gpus / (1 + len(allocation.partners))
            self.gpus += sign * gpus
            self.cpu_millis += sign * worker.cpu_millis
            self.memory_bytes += sign * worker.memory_bytes
            self.cost_per_s += sign * gpus * self._prices[allocation.gpu_type]

    def note(self, now: float, waiting: int) -> None:
        """Add the present to the series."""
        moment = UsageMoment(now, round(self.gpus), self.cpu_millis, self.memory_bytes, waiting)
        if self.series and self.series[-1].at == now:
            self.series[-1] = moment
        else:
            self.series.append(moment)

    def utilization(self, since: float) -> tuple[float, float, float]:
        """Parts of the GPUs, CPUs and memory that were given to jobs from `since` on, in the mean."""
        passed = self.until - since
        if passed <= 0:
            return 0.0, 0.0, 0.0
        gpus, cpus, memory = self._capacity
        return self.gpu_s / passed / gpus, self.cpu_milli_s / passed / cpus, self.memory_byte_s / passed / memory
