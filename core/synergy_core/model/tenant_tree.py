"""The tree of tenants as a plan reads it. What it says holds by GPU type, for a tenant and all below it.

* A tenant may hold no more than its limit, nor more than its guarantee and its borrowing limit together: its cap.
* Of its guarantee, what it does not hold is lent, but for its reserve: the guarantee less the lending limit.

Jobs that share a GPU count it once for each tenant that has one of them, and once for each tenant above these.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from synergy_core.model.snapshot import Job, Tenant

Path = tuple[int, ...]
"""The tenants above a job as indices, from the root down to the job's own."""

NO_CAP: Final = 2**62
_ALONE: Final[Mapping[str, Sequence[Job]]] = {}


class TenantTree:
    """The tenants of a snapshot. It is false where none of them says anything that a plan must keep.

    A job's tenant that is not among them is a root of its own, with neither guarantee nor limit. The jobs that name a
    tenant with children are like one more child without a guarantee: those of the children come first. `groups` has the
    members of each co-location group by the name under which it is planned.
    """

    def __init__(self, tenants: Sequence[Tenant] = (), groups: Mapping[str, Sequence[Job]] = _ALONE) -> None:
        self._listed = tuple(tenants)
        self._binds = any(tenant.binds for tenant in tenants)
        self._groups = groups
        self.tenants: list[Tenant] = list(tenants)
        """By index; those that are not listed follow as jobs name them."""
        self._index = {tenant.name: index for index, tenant in enumerate(tenants)}
        self._paths = {tenant.name: self._path_of(tenant) for tenant in tenants}
        self._below: dict[int, list[int]] = {}
        """By root, the tenants below it and itself, children first."""
        for index in sorted(range(len(tenants)), key=lambda index: -len(self._paths[tenants[index].name])):
            self._below.setdefault(self._paths[tenants[index].name][0], []).append(index)
        for name in {tenant.parent for tenant in tenants if tenant.parent is not None}:
            self._paths[name] += (len(self.tenants),)
            self.tenants.append(Tenant(name))
        self.height = max((len(path) for path in self._paths.values()), default=0)
        """The most tenants above each other."""
        self._reserving = frozenset(
            gpu_type
            for tenant in tenants
            for gpu_type, guarantee in tenant.guarantee.items()
            if tenant.lending.get(gpu_type, guarantee) < guarantee
        )
        self.guarantees = any(any(tenant.guarantee.values()) for tenant in self._listed)
        """Somebody is guaranteed something: else there is nothing to borrow."""
        self._of_job: dict[str, tuple[Path, ...]] = {}

    def __bool__(self) -> bool:
        return self._binds

    def with_groups(self, groups: Mapping[str, Sequence[Job]]) -> "TenantTree":
        """The same where these jobs are planned as groups."""
        return TenantTree(self._listed, groups) if self._binds and groups else self

    # Tenants of jobs

    def paths(self, job: Job) -> tuple[Path, ...]:
        """The tenants above a planned job; several paths where it is a group of several tenants' jobs."""
        found = self._of_job.get(job.name)
        if found is None:
            members = self._groups.get(job.name, (job,))
            found = self._of_job[job.name] = tuple(sorted({self.path(member.tenant) for member in members}))
        return found

    def path(self, name: str) -> Path:
        """A tenant and those above it."""
        if name not in self._paths:
            self._paths[name] = (len(self.tenants),)
            self.tenants.append(Tenant(name))
        return self._paths[name]

    def named(self, path: Path) -> int:
        """The tenant that a job with this path names."""
        return path[-2] if len(path) > 1 and self.tenants[path[-2]].name == self.tenants[path[-1]].name else path[-1]

    def nodes(self, job: Job) -> frozenset[int]:
        """All tenants that a planned job counts against."""
        paths = self.paths(job)
        return frozenset(paths[0]) if len(paths) == 1 else frozenset().union(*paths)

    # What they say

    def guarantee(self, index: int, gpu_type: str) -> int:
        """GPUs that are guaranteed."""
        return self.tenants[index].guarantee.get(gpu_type, 0)

    def weight(self, index: int) -> float:
        """Its part beside its siblings."""
        return self.tenants[index].weight

    def cap(self, index: int, gpu_type: str) -> int:
        """The most GPUs that a tenant may hold, by its limit and by its borrowing limit."""
        tenant = self.tenants[index]
        most = tenant.limit.get(gpu_type, NO_CAP)
        if gpu_type in tenant.borrowing:
            most = min(most, tenant.guarantee.get(gpu_type, 0) + tenant.borrowing[gpu_type])
        return most

    def most(self, job: Job, gpu_type: str) -> int:
        """The most GPUs of a type that the job could ever have."""
        return min((self.cap(index, gpu_type) for index in self.nodes(job)), default=NO_CAP)

    def roots(self, job: Job) -> frozenset[int]:
        """The topmost tenants above a planned job."""
        return frozenset(path[0] for path in self.paths(job))

    def reserved(self, gpu_type: str, held: Mapping[int, int], roots: Iterable[int] | None = None) -> int:
        """GPUs that stay free for tenants that hold so much, because these lend no more; of all, or below roots."""
        if gpu_type not in self._reserving:
            return 0
        return sum(self._reserved_below(root, gpu_type, held) for root in (self._below if roots is None else roots))

    def _reserved_below(self, root: int, gpu_type: str, held: Mapping[int, int]) -> int:
        below: dict[int | None, int] = {}
        for index in self._below.get(root, ()):
            tenant = self.tenants[index]
            guarantee = tenant.guarantee.get(gpu_type, 0)
            reserve = guarantee - min(guarantee, tenant.lending.get(gpu_type, guarantee))
            needed = max(0, reserve - held.get(index, 0), below.get(index, 0))
            above = None if tenant.parent is None else self._index[tenant.parent]
            below[above] = below.get(above, 0) + needed
        return below.get(None, 0)

    def _path_of(self, tenant: Tenant) -> Path:
        path = [self._index[tenant.name]]
        while tenant.parent is not None:
            tenant = self.tenants[self._index[tenant.parent]]
            path.append(self._index[tenant.name])
        return tuple(reversed(path))


NO_TENANTS: Final = TenantTree()
