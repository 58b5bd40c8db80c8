"""Admits granted runs on nodes with shared GPUs: partners by order, and the jobs seen on each GPU."""

from collections.abc import Iterable, Mapping

from synergy_api.parts.allocation import Allocation
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.run_state import open_run
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.colocation.order import group_of, in_the_way, occupancy
from synergy_extender.colocation.partners import Coming, SeenGpus, coming
from synergy_extender.colocation.pinned import PinnedDevices
from synergy_extender.decisions.changes import ChangeKind, Draft


class ByOrder:
    """One moment's look at the nodes on which partners come one by one. `reserved` are jobs for which a place is kept
    until they have left their old one."""

    def __init__(
        self, drafts: Iterable[Draft], state: ClusterState, assumed: AssumedBindings, reserved: Iterable[Key]
    ) -> None:
        drafts = list(drafts)
        self._state = state
        self._assumed = assumed
        self._reserved = frozenset(reserved)
        self._nodes = {capacity.name: capacity for capacity in state.capacities if capacity.by_order}
        granted = {draft.job.key: draft.granted for draft in drafts}
        self._granted = {
            str(key): allocation
            for key, allocation in granted.items()
            if allocation is not None and allocation.shared_gpu is not None and open_run(state.jobs[key]) is not None
        }
        self._pinned = PinnedDevices(state, {key: given for key, given in _holding(drafts) if given is not None})
        self._starting = self._under_way(granted) if self._nodes else set()

    def partners(self, job: Key, allocation: Allocation) -> Coming:
        """Where the job's planned partners are."""
        return coming(group_of(job, allocation), job, self._granted, self._reserved)

    def may_start(self, job: JobView, allocation: Allocation) -> bool:
        """Whether its pods would come to the GPU that the plan gives them, and its partners can follow."""
        if self.partners(job.key, allocation) is not Coming.HERE:
            return False
        group = group_of(job.key, allocation)
        for share in allocation.workers:
            node = self._nodes.get(share.node)
            if node is None:
                continue
            if node.name in self._starting:
                return False
            pods = {pod.uid: pod for pod in self._assumed.pods_to(node.name)}
            pods.update({pod.uid: pod for pod in self._state.pods.on_node(node.name)})
            if in_the_way(group, node, occupancy(pods.values(), self._state.jobs, node.replicas)) is not None:
                return False
        return True

    def placed(self, job: JobView, allocation: Allocation) -> Allocation | None:
        """The allocation with the devices that its claims name; None if they are not free."""
        return self._pinned.pin(job.key, allocation)

    def starts(self, job: JobView, allocation: Allocation) -> None:
        """No other job starts on its nodes until its pods are there, or gets its devices."""
        self._pinned.take(job.key, allocation)
        self._starting.update(share.node for share in allocation.workers if share.node in self._nodes)

    def another_starts(self, allocation: Allocation) -> bool:
        """Whether it has to wait for the pods of another job on one of its nodes."""
        return any(share.node in self._starting for share in allocation.workers)

    def _under_way(self, granted: Mapping[Key, Allocation | None]) -> set[str]:
        """Nodes to which pods of an admitted run still have to come."""
        found = set()
        for key, allocation in granted.items():
            if allocation is None or not allocation.admitted:
                continue
            for share in allocation.workers:
                if share.node in self._nodes and self._arrived(key, allocation.run, share.node) < (share.devices or 0):
                    found.add(share.node)
        return found

    def _arrived(self, job: Key, run: int, node: str) -> int:
        """Devices of the run's pods that the kubelet has taken in, ended ones included."""
        pods = (pod for pod in self._state.pods.of_job(job) if pod.member is not None and pod.member.run == run)
        return sum(pod.requests.gpus for pod in pods if pod.node == node and (pod.started or pod.terminal))


def _holding(drafts: Iterable[Draft]) -> Iterable[tuple[Key, Allocation | None]]:
    """What each open run holds, one that leaves included."""
    return ((draft.job.key, draft.allocation if open_run(draft.job) is not None else None) for draft in drafts)


def tell_seen(drafts: Iterable[Draft], state: ClusterState) -> None:
    """Record the jobs seen on the GPUs of runs on nodes with shared GPUs."""
    if not any(capacity.replicas > 1 for capacity in state.capacities):
        return
    gpus = SeenGpus(state.jobs.values())
    for draft in drafts:
        allocation = draft.granted
        if allocation is None or allocation.shared_gpu is None or not allocation.admitted:
            continue
        seen = gpus.partners(draft.job.key, allocation.shared_gpu) if open_run(draft.job) is not None else None
        if seen is not None and seen != allocation.shared_gpu.seen:
            told = allocation.shared_gpu.model_copy(update={"seen": seen})
            draft.put(ChangeKind.STAY, allocation.model_copy(update={"shared_gpu": told}))
