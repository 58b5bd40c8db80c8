"""Admits granted runs, and lets runs grow, as far as the ledger has room."""

from collections.abc import Container, Iterable, Mapping
from itertools import chain
from typing import Protocol

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_extender.cluster.ledger import AssumedBindings, Ledger, amounts_of_share
from synergy_extender.cluster.pod_index import PodIndex
from synergy_extender.cluster.views import JobView
from synergy_extender.decisions.allocations import grown, growth
from synergy_extender.decisions.changes import ChangeKind, Draft


class Order(Protocol):
    """A further condition for a start, beside the ledger."""

    def may_start(self, job: JobView, allocation: Allocation) -> bool:
        """Whether the run may start now, where there is room."""

    def placed(self, job: JobView, allocation: Allocation) -> Allocation | None:
        """The allocation as it starts, with the devices that its claims name; None if they are not free."""

    def starts(self, job: JobView, allocation: Allocation) -> None:
        """Take note that it does."""


class Quotas(Protocol):
    """A further condition for growth, beside the ledger."""

    def grow(self, job: JobView, now: Iterable[NodeShare], then: Iterable[NodeShare]) -> bool:
        """Take what an open run needs beyond what it has, if all of it is free."""


class Tenants(Protocol):
    """A further condition for a start: what tenants may have."""

    def may_start(self, job: JobView, allocation: Allocation) -> bool:
        """Whether no tenant would have more than it may because others have not left yet."""

    def starts(self, job: JobView, allocation: Allocation) -> None:
        """Take note that it does."""


class _NoQuotas:
    def grow(self, job: JobView, now: Iterable[NodeShare], then: Iterable[NodeShare]) -> bool:
        return True


class _NoTenants:
    def may_start(self, job: JobView, allocation: Allocation) -> bool:
        return True

    def starts(self, job: JobView, allocation: Allocation) -> None:
        return None


def admit(
    drafts: Iterable[Draft],
    ledger: Ledger,
    pods: PodIndex,
    assumed: AssumedBindings,
    order: Order,
    *,
    quotas: Quotas = _NoQuotas(),  # noqa: B008 - it has no state
    tenants: Tenants = _NoTenants(),  # noqa: B008 - it has no state
    others: Iterable[JobView] = (),
) -> None:
    """Admit granted runs and promote planned growth, each whole or not at all, oldest job first. `others` are the jobs
    without a draft: they keep what they have.

    Room that an admitted run was given counts as taken, whether its pods are there already or not.
    """
    everyone = list(drafts)
    ordered = sorted(filter(asks_for_room, everyone), key=lambda draft: (draft.job.created, draft.job.key))
    places = (draft.granted for draft in ordered)
    nodes = {share.node for place in places if place is not None for share in (*place.workers, *place.planned)}
    runs = chain(((draft.job, draft.granted) for draft in everyone), ((job, job.status.allocation) for job in others))
    room = _Room(ledger, _reserved(runs, nodes, pods, assumed))
    for draft in ordered:
        allocation = draft.granted
        if allocation is not None and not allocation.admitted:
            ask = [(share.node, amounts_of_share(share)) for share in allocation.workers]
            may = tenants.may_start(draft.job, allocation) and order.may_start(draft.job, allocation)
            placed = order.placed(draft.job, allocation) if may else None
            if placed is not None and room.take(ask):
                order.starts(draft.job, placed)
                tenants.starts(draft.job, placed)
                draft.put(ChangeKind.ADMIT, placed.model_copy(update={"admitted": True}))
    for draft in ordered:
        allocation = draft.granted
        if allocation is not None and allocation.admitted and allocation.planned:
            held = held_by_run(draft.job, allocation.run, pods, assumed)
            goal = grown(allocation)
            if quotas.grow(draft.job, allocation.workers, goal.workers) and room.take(
                _beyond(growth(allocation), allocation, held)
            ):
                draft.put(ChangeKind.ADMIT, goal)


def asks_for_room(draft: Draft) -> bool:
    """Whether the run was granted a place, or growth, that it is not admitted to yet."""
    allocation = draft.granted
    return allocation is not None and (not allocation.admitted or bool(allocation.planned))


def held_by_run(job: JobView, run: int, pods: PodIndex, assumed: AssumedBindings) -> dict[str, Amounts]:
    """What the run's pods hold on each node, those on their way to it included."""
    held: dict[str, Amounts] = {}
    for pod in pods.of_run(job.key, run):
        node = pod.node or assumed.node_of(pod.uid)
        if node:
            held[node] = held.get(node, NOTHING).plus(pod.requests)
    return held


class _Room:
    """Free room that is handed out."""

    def __init__(self, ledger: Ledger, taken: Mapping[str, Amounts]) -> None:
        self._ledger = ledger
        self._taken = dict(taken)

    def take(self, ask: Iterable[tuple[str, Amounts]]) -> bool:
        """Take all of it if all of it is free."""
        asked = list(ask)
        if not all(self._ledger.knows(n) and a.fits(self._free(n)) for n, a in asked):
            return False
        for node, amounts in asked:
            self._taken[node] = self._taken.get(node, NOTHING).plus(amounts)
        return True

    def _free(self, node: str) -> Amounts:
        return self._ledger.free(node).minus(self._taken.get(node, NOTHING))


def _reserved(
    runs: Iterable[tuple[JobView, Allocation | None]], nodes: Container[str], pods: PodIndex, assumed: AssumedBindings
) -> dict[str, Amounts]:
    """What admitted runs were given on these nodes and their pods do not hold yet."""
    reserved: dict[str, Amounts] = {}
    for job, allocation in runs:
        if allocation is None or allocation.state != "Granted" or not allocation.admitted:
            continue
        shares = [share for share in allocation.workers if share.node in nodes]
        held = held_by_run(job, allocation.run, pods, assumed) if shares else {}
        for share in shares:
            rest = amounts_of_share(share).minus(held.get(share.node, NOTHING)).at_least(NOTHING)
            reserved[share.node] = reserved.get(share.node, NOTHING).plus(rest)
    return reserved


def _beyond(
    ask: Iterable[tuple[str, Amounts]], allocation: Allocation, held: Mapping[str, Amounts]
) -> list[tuple[str, Amounts]]:
    """`ask`, less what the run's pods hold beyond `workers` already."""
    given = {share.node: amounts_of_share(share) for share in allocation.workers}
    return [(n, a.minus(held.get(n, NOTHING).minus(given[n]).at_least(NOTHING)).at_least(NOTHING)) for n, a in ask]
