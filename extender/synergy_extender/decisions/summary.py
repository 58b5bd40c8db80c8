"""The texts that `kubectl get` shows of what the plan gives a job, or of its waiting."""

from functools import reduce

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.length import total_steps
from synergy_api.parts.allocation import Allocation
from synergy_api.parts.summary import Summary, cpu_text, gpus_text, memory_text, partners_text, steps_text
from synergy_extender.cluster.state import ClusterState
from synergy_extender.decisions.changes import StatusChange


class GPUShares:
    """What each GPU of a node has of the node's CPU and memory, as the planner divides them (Synergy, appendix A)."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._capacities = {capacity.name: capacity for capacity in state.capacities}
        self._known: dict[str, Amounts | None] = {}

    def of(self, node: str) -> Amounts | None:
        """CPU and memory of one GPU; None where the node is gone or has no GPU left."""
        if node not in self._known:
            capacity = self._capacities.get(node)
            self._known[node] = _for_one_gpu(capacity, self._of_others(node)) if capacity is not None else None
        return self._known[node]

    def _of_others(self, node: str) -> Amounts:
        """What pods without a TrainingJob hold there, such as those of DaemonSets."""
        total = NOTHING
        for pod in self._state.pods.on_node(node):
            if pod.member is None:
                total = total.plus(pod.requests)
        return total


def summary_of(change: StatusChange, shares: GPUShares) -> Summary:
    """The texts about the fields of a change."""
    job, allocation = change.job, change.allocation
    if allocation is not None and allocation.workers:
        proportional = _proportional(allocation, shares)
        total = reduce(Amounts.plus, map(Amounts.of, allocation.workers), NOTHING)
        return Summary(
            gpus=gpus_text(allocation),
            cpu=cpu_text(total.cpu_millis, proportional.cpu_millis if proportional is not None else None),
            memory=memory_text(total.memory_bytes, proportional.memory_bytes if proportional is not None else None),
            partners=partners_text(allocation, job.key.namespace),
        )
    if change.queue is None:
        return Summary()
    never_reported = job.status.progress is None
    return Summary(
        gpus=str(job.spec.gpus), start=steps_text(0, total_steps(job.spec, job.status)) if never_reported else None
    )


def _proportional(allocation: Allocation, shares: GPUShares) -> Amounts | None:
    """The GPU-proportional share of the place: for each GPU as much as the poorest of its nodes has for one."""
    least: Amounts | None = None
    for worker in allocation.workers:
        own = shares.of(worker.node)
        if own is None:
            return None
        least = own if least is None else least.at_most(own)
    gpus = sum(worker.gpus for worker in allocation.workers)
    return least.part(gpus, 1) if least is not None else None


def _for_one_gpu(node: NodeCapacity, others: Amounts) -> Amounts | None:
    gpus_left = node.gpus + -others.gpus // node.devices_per_gpu  # a GPU that others have a part of is not left
    if gpus_left <= 0:
        return None
    share, left = node.amounts.part(1, node.gpus), node.amounts.minus(others).part(1, gpus_left)
    return share.at_most(left).at_least(NOTHING)
