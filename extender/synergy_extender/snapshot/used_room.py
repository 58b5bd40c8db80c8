"""What of each node a plan cannot give away.

* Pods that no plan moves count as used: those of other people, and those that outlived their run.
* Revoked runs count as gone in a round plan, whose places begin when they have left.
* In a fill plan, whose places begin now, they count as used, as far as their room is not reserved.
"""

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_api.timestamps import parse_time
from synergy_core.model import snapshot as core
from synergy_core.model.config import Mode
from synergy_extender.cluster.ledger import amounts_of_share
from synergy_extender.cluster.own_pods import own_pods
from synergy_extender.cluster.run_state import RunState, open_run, run_state
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.colocation.devices import shares_of

OVERDUE_SECONDS = 60.0
"""What holds its place this long after its lease or grace has ended may never leave: plans stop counting on it."""

_NOBODY: Mapping[Key, JobView] = MappingProxyType({})


def used_room(
    state: ClusterState,
    mode: Mode,
    now: float,
    planned: set[str],
    reserved: Mapping[Key, core.Allocation],
    *,
    unwritten: Container[Key],
    runs: "KnownRuns | None" = None,
    resting: Mapping[Key, JobView] = _NOBODY,
) -> dict[str, Amounts]:
    """What of each node a plan cannot give away. A run about which nothing can be written (`unwritten`) cannot be
    revoked, so it holds what its pods hold. `runs` are those of the last snapshot; `resting` are planned runs at rest:
    they hold what they will use."""
    known = runs or KnownRuns()
    known.begin()
    rested = known.of_all(state, resting)
    used = {
        capacity.name: _beside(state.pods.held(capacity.name), rested.get(capacity.name))
        for capacity in state.capacities
    }
    leaving: dict[str, Amounts] = {}
    incoming: dict[str, Amounts] = {}
    capacities = {capacity.name: capacity for capacity in state.capacities}
    for place in reserved.values():
        _add(incoming, _shares(shares_of(place, capacities)))
    for key, job in state.jobs.items():
        allocation = None if key in resting else open_run(job)
        if allocation is None:
            continue
        own, on_its_way = known.of(state, job, allocation)
        _add(used, ((node, NOTHING.minus(amounts)) for node, amounts in own.items()))
        if run_state(job, now) is RunState.LEAVING:
            _add(used if mode == "round" and overdue(allocation, now) else leaving, own.items())
        elif str(job.key) in planned:
            _add(incoming, on_its_way)
        else:
            _add(used, own.items())
            if job.key in unwritten and not own:
                continue
            _add(used, ((n, a.minus(own.get(n, NOTHING)).at_least(NOTHING)) for n, a in _shares(allocation.workers)))
    if mode == "fill":
        unclaimed = {n: amounts.minus(incoming.get(n, NOTHING)).at_least(NOTHING) for n, amounts in leaving.items()}
        _add(used, unclaimed.items())
    return used


class KnownRuns:
    """What runs hold, of those whose job and pods are the same as before."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[JobView, object, _Run]] = {}
        self._next: dict[Key, tuple[JobView, object, _Run]] = {}
        self._resting: dict[Key, tuple[JobView, object, dict[str, Amounts]]] = {}
        self._rested: dict[str, Amounts] = {}

    def of_all(self, state: ClusterState, resting: Mapping[Key, JobView]) -> Mapping[str, Amounts]:
        """What the pods of these runs hold together by node: what it was for the last ones, and what has changed."""
        before, self._resting = self._resting, {}
        for key, job in resting.items():
            known, pods = before.get(key), state.pods.group_of(key)
            if known is None or known[0] is not job or known[1] is not pods:
                allocation = open_run(job)
                own = {} if allocation is None else _held_by_run(state, job, allocation)
                if known is not None:
                    _subtract(self._rested, known[2])
                _add(self._rested, own.items())
                known = (job, pods, own)
            self._resting[key] = known
        for key in before.keys() - self._resting.keys():
            _subtract(self._rested, before[key][2])
        return self._rested

    def begin(self) -> None:
        """Another snapshot: jobs that the last one did not ask for are forgotten."""
        if self._next:
            self._known, self._next = self._next, {}

    def of(self, state: ClusterState, job: JobView, allocation: Allocation) -> "_Run":
        """What the run's pods hold by node, and what a granted run will use but does not yet."""
        known, pods = self._known.get(job.key), state.pods.group_of(job.key)
        if known is not None and known[0] is job and known[1] is pods:
            run = known[2]
        else:
            run = (_held_by_run(state, job, allocation), _on_its_way(allocation))
        self._next[job.key] = (job, pods, run)
        return run


_Run = tuple[dict[str, Amounts], list[tuple[str, Amounts]]]


def _on_its_way(allocation: Allocation) -> list[tuple[str, Amounts]]:
    """What a granted run will use but does not yet: all before it is admitted, then what it shall grow by."""
    given = dict(_shares(allocation.workers)) if allocation.admitted else {}
    goal = _shares(allocation.planned or allocation.workers)
    return [(node, amounts.minus(given.get(node, NOTHING)).at_least(NOTHING)) for node, amounts in goal]


def _shares(shares: Iterable[NodeShare]) -> list[tuple[str, Amounts]]:
    return [(share.node, amounts_of_share(share)) for share in shares]


def _held_by_run(state: ClusterState, job: JobView, allocation: Allocation) -> dict[str, Amounts]:
    """What the run's pods hold by node, no more GPUs than it was given there: the rest would count as free. Pods of a
    managed object are never resized, and their sizes are their owner's words, so the same holds for CPU and memory."""
    own: dict[str, Amounts] = {}
    _add(own, ((pod.node, pod.requests) for pod in own_pods(job, allocation, state.pods) if pod.node))
    given = dict(_shares(allocation.workers))
    if job.spec.managed is not None:
        return {node: Amounts(*map(min, amounts, given[node])) for node, amounts in own.items()}
    return {node: amounts._replace(gpus=min(amounts.gpus, given[node].gpus)) for node, amounts in own.items()}


def _add(totals: dict[str, Amounts], more: Iterable[tuple[str, Amounts]]) -> None:
    for node, amounts in more:
        totals[node] = totals.get(node, NOTHING).plus(amounts)


def _subtract(totals: dict[str, Amounts], less: Mapping[str, Amounts]) -> None:
    for node, amounts in less.items():
        totals[node] = totals.get(node, NOTHING).minus(amounts)
        if totals[node] == NOTHING:
            del totals[node]


def _beside(held: Amounts, ours: Amounts | None) -> Amounts:
    """What others hold."""
    if ours is None:
        return held
    return NOTHING if held == ours else held.minus(ours)


def overdue(allocation: Allocation, now: float) -> bool:
    """Whether the run should have left long ago."""
    until = allocation.lease_until
    return until is not None and now > parse_time(until) + OVERDUE_SECONDS
