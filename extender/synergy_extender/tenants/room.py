"""Whether a Tenant has room for a run that was granted, while runs that leave still hold their GPUs. Pure.

A plan counts what leaves as gone. Its pods are not gone yet: if another run of the tenant started meanwhile on free
nodes, the tenant would have more than it may. Only what leaves makes a run wait here: all else the plan decides.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from synergy_api.cluster.tenant_tree import TreeTenant
from synergy_api.parts.allocation import Allocation
from synergy_extender.cluster.run_state import open_run
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key, PodView
from synergy_extender.tenants.uses import tree_of

_Share = tuple[str, str]
"""Tenant and GPU type."""


class TenantRoom:
    """GPUs that tenants with a cap hold now. `runs` are all jobs with the allocations that they shall have: one that is
    revoked leaves. Pods of jobs that are no longer there leave too."""

    def __init__(self, state: ClusterState, runs: Iterable[tuple[JobView, Allocation | None]]) -> None:
        self._state = state
        self._nodes = {node.name: node for node in state.capacities}
        self._tree = tree_of(state)
        self._caps = _caps(self._tree.tenants)
        self._held: Counter[_Share] = Counter()
        self._leaving: dict[_Share, list[PodView]] = defaultdict(list)
        self._shared: set[tuple[str, frozenset[str]]] = set()
        known = set()
        for job, allocation in runs if self._caps else ():
            known.add(job.key)
            self._count(job, allocation)
        for key in self._state.pods.jobs() - known if self._caps else ():
            self._count_gone(key)

    def may_start(self, job: JobView, allocation: Allocation) -> bool:
        """Whether no tenant above the job would have more than it may because others have not left yet."""
        gpus = _gpus(allocation)
        return not any(
            self._leaving.get(share) and self._held[share] + gpus > self._caps[share]
            for share in self._shares(job, allocation.gpu_type)
            if (share[0], _group(job, allocation)) not in self._shared
        )

    def starts(self, job: JobView, allocation: Allocation) -> None:
        """Take note that it does."""
        group = _group(job, allocation)
        for share in self._shares(job, allocation.gpu_type):
            if (share[0], group) not in self._shared:
                self._held[share] += _gpus(allocation)
            if len(group) > 1:
                self._shared.add((share[0], group))

    def leaving(self, job: JobView, allocation: Allocation) -> list[PodView]:
        """The pods for which the job may have to wait."""
        return [pod for share in self._shares(job, allocation.gpu_type) for pod in self._leaving.get(share, ())]

    def _count(self, job: JobView, allocation: Allocation | None) -> None:
        holds = allocation is not None and allocation.admitted and open_run(job) is not None
        run = allocation.run if holds and allocation is not None else None
        if holds and allocation is not None:
            self.starts(job, allocation)
        leaves = allocation is not None and allocation.state == "Revoked"
        for pod in self._state.pods.of_job(job.key):
            ours = pod.member is not None and pod.member.run == run
            if pod.holds and (leaves or not ours):
                self._leaves(pod, lambda gpu_type: self._shares(job, gpu_type), counted=ours)

    def _count_gone(self, key: Key) -> None:
        """The pods of a job that is deleted. Nothing says which of its namespace's tenants it had."""
        tenants = self._state.tenancy.established(key.namespace, "").allowed
        for pod in self._state.pods.of_job(key):
            if pod.holds:
                self._leaves(pod, lambda gpu_type: self._shares_of(tenants, gpu_type), counted=False)

    def _leaves(self, pod: PodView, shares: Callable[[str], Iterable[_Share]], *, counted: bool) -> None:
        node = self._nodes.get(pod.node)
        for share in shares(node.gpu_type) if node is not None else ():
            self._leaving[share].append(pod)
            if not counted and node is not None:
                self._held[share] += -(-pod.requests.gpus // node.devices_per_gpu)

    def _shares(self, job: JobView, gpu_type: str) -> list[_Share]:
        if not self._caps:
            return []
        tenant = self._state.tenancy.established(job.key.namespace, job.spec.tenant).name
        return self._shares_of((tenant,), gpu_type)

    def _shares_of(self, tenants: Iterable[str], gpu_type: str) -> list[_Share]:
        """Those with a cap, of the tenants and all above them."""
        above = dict.fromkeys(name for tenant in tenants for name in self._tree.upwards(tenant))
        return [share for name in above if (share := (name, gpu_type)) in self._caps]


def _gpus(allocation: Allocation) -> int:
    return sum(share.gpus for share in allocation.workers)


def _group(job: JobView, allocation: Allocation) -> frozenset[str]:
    """The jobs that share its GPUs as planned, itself among them. A tenant holds a GPU once."""
    return frozenset((str(job.key), *(allocation.shared_gpu.asked if allocation.shared_gpu is not None else ())))


def _caps(tenants: Mapping[str, TreeTenant]) -> dict[_Share, int]:
    """The most GPUs that each tenant may have of each type, where its limit or what it may borrow says so."""
    found = {}
    for name, one in tenants.items():
        said = one.tenant.spec
        borrowing = {kind: one.guarantee.get(kind, 0) + most for kind, most in said.borrowing.items()}
        for kind in said.limit.keys() | borrowing.keys():
            found[name, kind] = min(caps[kind] for caps in (said.limit, borrowing) if kind in caps)
    return found
