"""The texts that `kubectl get` shows of what the plan gives a job, or of its waiting."""

from collections.abc import Callable

from synergy_api.cluster.pools import NodeCapacity
from synergy_api.parts.allocation import Allocation
from synergy_api.parts.summary import Summary, cpu_text, gpus_text, memory_text, partners_text, steps_text
from synergy_extender.colocation.devices import Capacities
from synergy_extender.decisions.changes import StatusChange


def summary_of(change: StatusChange, capacities: Capacities) -> Summary:
    """The texts about the fields of a change."""
    job, allocation = change.job, change.allocation
    if allocation is not None and allocation.workers:
        shares = allocation.workers
        return Summary(
            gpus=gpus_text(allocation),
            cpu=cpu_text(
                sum(share.cpu_millis for share in shares),
                _proportional(allocation, capacities, lambda node: node.cpu_millis),
            ),
            memory=memory_text(
                sum(share.memory_bytes for share in shares),
                _proportional(allocation, capacities, lambda node: node.memory_bytes),
            ),
            partners=partners_text(allocation, job.key.namespace),
        )
    if change.queue is None:
        return Summary()
    never_reported = job.status.progress is None
    return Summary(gpus=str(job.spec.gpus), start=steps_text(0, job.spec.steps) if never_reported else None)


def _proportional(allocation: Allocation, capacities: Capacities, amount: Callable[[NodeCapacity], int]) -> int | None:
    """The GPU-proportional share of the place: for each GPU as much as the poorest of its nodes has for one. None where
    a node is gone or has lost its GPUs."""
    nodes = [capacities.get(share.node) for share in allocation.workers]
    for_one = [amount(node) // node.gpus for node in nodes if node is not None and node.gpus]
    if len(for_one) < len(nodes):
        return None
    return min(for_one) * sum(share.gpus for share in allocation.workers)
