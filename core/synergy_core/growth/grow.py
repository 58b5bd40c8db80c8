"""Decides how many nodes of which group to ask for, and tells jobs which promised nodes they wait for.

Jobs that wait are placed on promised nodes first, in the order of the queue: those that have waited long enough to ask
for nodes of the group, then the others. For those that are left, the cheapest group is tried with as many further nodes
as the bounds allow. Nodes that a job would use are asked for. A gang is placed whole or not at all, so no part of one
is asked for.

The bounds: the group's `max_nodes`, the price of all GPUs for an hour (`max_price_per_hour`), and how long a job must
have waited. After a failed request the group asks for nothing until `not_before`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import floor, inf
from typing import Final

from synergy_core.explain.waiting import waiting
from synergy_core.growth.trial import NewNode, Planned, Trial, may_use, new_node, used_of
from synergy_core.model.answer import Growth, Plan, Waiting
from synergy_core.model.config import PlanConfig
from synergy_core.model.reasons import Reason
from synergy_core.model.snapshot import Job, NodeGroup, Snapshot

_NOT_FOR_LACK_OF_NODES: Final = frozenset(
    {Reason.KEPT_FREE.value, Reason.NOT_WORTH_ITS_PRICE.value, Reason.PROFILE_SHARE_USED.value}
)
"""Jobs that wait for these reasons have GPUs that are free."""
_MOST_NODES: Final = 512
"""Of one group, in one plan: the next one asks for more."""
_SAME_PRICE: Final = 1e-9


def with_growth(snapshot: Snapshot, config: PlanConfig, plan: Plan, planned: Planned) -> Plan:
    """The plan, with what to ask for. The same object where no group can grow and nothing is promised."""
    if not snapshot.node_groups or not config.explain:
        return plan
    by_name = {job.name: job for job in snapshot.jobs}
    queue = [
        by_name[one.job]
        for one in plan.waiting
        if one.reason not in _NOT_FOR_LACK_OF_NODES and by_name[one.job].purpose == "train"
    ]
    promised = [
        new_node(group, index, promise.name, promise.at)
        for group in snapshot.node_groups
        for promise in group.promises
        for index in range(promise.nodes)
    ]
    trial = Trial(snapshot, config, plan.allocations, queue, planned)
    expected: Mapping[str, Sequence[NewNode]] = {}
    growth: tuple[Growth, ...] = ()
    limits: Mapping[str, str] = {}
    if queue:
        trial.fill(())  # those that fit now need no node
        expected = _expected(snapshot, trial, promised)
        growth, limits = _grown(snapshot, config, trial)
    needed = {one.promise for used in expected.values() for one in used}
    waits = {job.name for job in trial.waiting()}
    groups = {group.name: group for group in snapshot.node_groups}
    held = {groups[name]: why for name, why in sorted(limits.items()) if why}
    return replace(
        plan,
        waiting=tuple(
            _told(one, by_name[one.job], expected.get(one.job), held if one.job in waits else {})
            for one in plan.waiting
        ),
        growth=growth,
        unneeded=tuple(sorted({one.promise for one in promised} - needed)),
    )


def _expected(snapshot: Snapshot, trial: Trial, promised: Sequence[NewNode]) -> Mapping[str, Sequence[NewNode]]:
    """The promised nodes that waiting jobs would run on. Jobs that may ask for nodes of the group come first, as when
    these were asked for: while others have their promises, they would ask again and again."""
    found: dict[str, list[NewNode]] = {}
    for group in _by_price(snapshot):
        nodes = [one for one in promised if one.group is group]
        wanting = {job.name for job in _wanting(trial, group)}
        if nodes and wanting:
            found |= trial.fill(nodes, wanting)
    used = used_of(promised, found)
    left = [one for one in promised if one not in used]
    if left and trial.waiting():
        found |= trial.fill(left)
    return found


def _by_price(snapshot: Snapshot) -> list[NodeGroup]:
    return sorted(snapshot.node_groups, key=lambda one: (one.price_per_hour, one.name))


def _wanting(trial: Trial, group: NodeGroup) -> list[Job]:
    """The waiting jobs that may use the group, and have waited long enough to ask for nodes of it."""
    return [job for job in trial.waiting() if may_use(job, group) and job.waiting_s >= group.waiting_s]


def _grown(snapshot: Snapshot, config: PlanConfig, trial: Trial) -> tuple[tuple[Growth, ...], Mapping[str, str]]:
    """What to ask for, and by group why it does not grow further."""
    budget = _Budget(snapshot, config)
    growth: list[Growth] = []
    limits: dict[str, str] = {}
    for group in _by_price(snapshot):
        wanting = _wanting(trial, group)
        number = min(
            budget.most_nodes(group, snapshot.now)[0], sum(_most_needed(job, group) for job in wanting), _MOST_NODES
        )
        new = [new_node(group, at) for at in range(number)]
        found = trial.fill(new, {job.name for job in wanting}) if new else {}
        used = used_of(new, found)
        if used:
            jobs = sorted(name for name, nodes in found.items() if used_of(used, {name: nodes}))
            growth.append(Growth(group.name, len(used), tuple(jobs)))
            budget.spend(group, len(used))
        limits[group.name] = budget.most_nodes(group, snapshot.now)[1]
    return tuple(growth), limits


def _most_needed(job: Job, group: NodeGroup) -> int:
    """Nodes that the job could use at the most."""
    return job.gpus if job.placement == "spread" else -(-job.gpus // group.gpus)


class _Budget:
    """How much more may be asked for."""

    def __init__(self, snapshot: Snapshot, config: PlanConfig) -> None:
        self._asked = {group.name: _promised(group) for group in snapshot.node_groups}
        self._left: float | None = None
        if config.max_price_per_hour is not None and config.max_price_per_hour < inf:
            there = sum(node.gpus * node.price_per_hour for node in snapshot.nodes)
            coming = sum(_price(group) * _promised(group) for group in snapshot.node_groups)
            self._left = config.max_price_per_hour - there - coming

    def most_nodes(self, group: NodeGroup, now: float) -> tuple[int, str]:
        """How many nodes of the group may be asked for, and why no more."""
        if group.not_before is not None and now < group.not_before:
            return 0, "asks for nothing yet, since a request has failed"
        most = max(0, group.max_nodes - group.nodes - self._asked[group.name])
        if most == 0 or self._left is None:
            return most, "" if most else f"has its {group.max_nodes} nodes at most, or has asked for them"
        if group.price_per_hour <= 0.0:
            return 0, "has no price, and the policy bounds the price per hour"
        affordable = max(0, floor((self._left + _SAME_PRICE) / _price(group)))
        return min(most, affordable), "" if affordable else "would exceed the policy's price per hour"

    def spend(self, group: NodeGroup, nodes: int) -> None:
        """Nodes that are asked for now."""
        self._asked[group.name] += nodes
        if self._left is not None:
            self._left -= _price(group) * nodes


def _price(group: NodeGroup) -> float:
    """Of one node for an hour."""
    return group.gpus * group.price_per_hour


def _promised(group: NodeGroup) -> int:
    return sum(promise.nodes for promise in group.promises)


def _told(one: Waiting, job: Job, nodes: Sequence[NewNode] | None, held: Mapping[NodeGroup, str]) -> Waiting:
    """The entry of a waiting job, with the nodes that it waits for, or why no node is asked for it."""
    if nodes:
        groups = ", ".join(sorted({node.group.name for node in nodes}))
        number = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
        promised = waiting(job, Reason.NODES_PROMISED, {"nodes": number, "groups": groups})
        return replace(promised, at=max(node.at for node in nodes))
    why = [f"{group.name} {reason}" for group, reason in held.items() if may_use(job, group)]
    if not why or one.reason in _NOT_FOR_LACK_OF_NODES:
        return one
    return replace(one, message=f"{one.message} No node is asked for it: {'; '.join(why)}.")
