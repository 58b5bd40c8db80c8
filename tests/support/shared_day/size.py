"""How large the day is: nodes, teams, jobs, and how many seconds it takes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from synergy_core.model.snapshot import Tenant

TYPES = ("day-v100", "day-p100", "day-k80")
"""GPU types that no other test has."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """A day. `nodes` are nodes of each GPU type, `parts` what tenants have of each type's GPUs, in twelfths."""

    jobs: int
    nodes: Mapping[str, int]
    gpus_per_node: int
    parents: Mapping[str, str | None]
    """By tenant, the tenant above it."""
    guaranteed: Mapping[str, int]
    limited: Mapping[str, int]
    borrows: Mapping[str, int]
    lends: Mapping[str, int]
    day_s: float
    """Seconds in which the jobs come: a day."""
    round_s: int
    shortest_s: float
    """On the fastest type. The longest job takes three times as long."""
    gpu_mix: Mapping[int, float]
    seed: int = 20

    def part(self, divisor: int) -> "Size":
        """As many jobs and nodes as 1/divisor of the day's; the same tenants, and the same seconds."""
        nodes = {gpu_type: count // divisor for gpu_type, count in self.nodes.items()}
        return replace(self, jobs=self.jobs // divisor, nodes=nodes)

    @property
    def teams(self) -> list[str]:
        """The tenants that have jobs: those without children."""
        above = set(self.parents.values())
        return [name for name in self.parents if name not in above]

    def gpus(self, gpu_type: str) -> int:
        """GPUs of a type in the cluster."""
        return self.nodes[gpu_type] * self.gpus_per_node

    def most(self, team: str) -> int:
        """The most GPUs of one type that the team may have."""
        tenants = {tenant.name: tenant for tenant in self.tenants()}
        caps = [self.gpus(TYPES[0])]
        name: str | None = team
        while name is not None:
            tenant, gpu_type = tenants[name], TYPES[0]
            caps.append(tenant.limit.get(gpu_type, caps[0]))
            caps.append(tenant.guarantee.get(gpu_type, 0) + tenant.borrowing.get(gpu_type, caps[0]))
            name = tenant.parent
        return min(caps)

    def tenants(self) -> tuple[Tenant, ...]:
        """The tree as plans read it."""
        return tuple(
            Tenant(
                name,
                parent=parent,
                guarantee=self._part(self.guaranteed, name),
                limit=self._part(self.limited, name),
                borrowing=self._part(self.borrows, name),
                lending=self._part(self.lends, name),
            )
            for name, parent in self.parents.items()
        )

    def _part(self, parts: Mapping[str, int], name: str) -> dict[str, int]:
        return {one: self.gpus(one) * parts[name] // 12 for one in TYPES} if name in parts else {}


SMALL = Size(
    jobs=40,
    nodes={"day-v100": 4, "day-p100": 4, "day-k80": 2},
    gpus_per_node=8,
    parents={"research": None, "vision": "research", "speech": "research"},
    guaranteed={"research": 9, "vision": 6, "speech": 3},
    limited={"vision": 9},
    borrows={"vision": 2},
    lends={"speech": 1},
    day_s=10.0,
    round_s=5,
    shortest_s=2.0,
    gpu_mix={4: 0.3, 6: 0.3, 8: 0.4},
)
"""For each change: 40 jobs, 10 nodes, 3 tenants."""

WHOLE = Size(
    jobs=1000,
    nodes={"day-v100": 80, "day-p100": 80, "day-k80": 40},
    gpus_per_node=2,
    parents={
        "research": None, "vision": "research", "speech": "research", "robots": "research",
        "product": None, "search": "product", "ads": "product", "maps": "product",
        "guests": None, "partners": "guests", "interns": "guests", "students": "guests",
    },
    guaranteed={
        "research": 5, "vision": 2, "speech": 2, "robots": 1, "product": 5, "search": 2, "ads": 1, "maps": 1,
        "guests": 1, "partners": 1,
    },
    limited={"guests": 4, "students": 2},
    borrows={"robots": 1, "ads": 2},
    lends={"search": 1},
    day_s=1980.0,
    round_s=180,
    shortest_s=144.0,
    gpu_mix={1: 0.5, 2: 0.25, 4: 0.2, 8: 0.05},
)  # fmt: skip
"""200 nodes, 12 tenants, 1,000 jobs. The day has 33 minutes, so that what a start takes is small beside a job."""
