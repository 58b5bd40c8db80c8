"""Plans a cluster in parts, which can be planned at the same time, and reconciles what they share.

1. If something is shared by all GPU types (`shared`), the cluster is planned as one.
2. Each job that may run on several types gets a home among them (`homes`).
3. Types that jobs, quotas or budgets connect are one part (`components`); each part is planned by `plan`.
   A running job that loses its place by that count may have its home elsewhere.
4. A job that waits while another of its types has GPUs for it (`envy`) gets that type as its home. The parts that this
   changes are planned again, three times at most. If jobs still wait so, the cluster is planned as one.

Without jobs that have a choice, the result is the plan of the whole cluster.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from synergy_core.cache import Memory
from synergy_core.checks import check
from synergy_core.model.answer import Plan
from synergy_core.model.cluster import nodes_of
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot
from synergy_core.partitions.components import may_use, parts
from synergy_core.partitions.envy import envious, is_limited
from synergy_core.partitions.homes import homes
from synergy_core.partitions.joined import joined
from synergy_core.partitions.shared import indivisible
from synergy_core.plan import grown, plan, queue_of
from synergy_core.selection.preemption.budgets import out_of_own_budget
from synergy_core.selection.preemption_protection import protected
from synergy_core.selection.queue_entry import QueueEntry, fastest_first
from synergy_core.throughput.skew import PackRules

PlanAll = Callable[[Sequence[Snapshot], PlanConfig], Sequence[Plan]]
"""Plans several snapshots, each as `plan` does."""

_PASSES: Final = 3


def plan_by_parts(snapshot: Snapshot, config: PlanConfig, plan_all: PlanAll, memory: Memory | None = None) -> Plan:
    """The plan of a cluster, made of the plans of its parts where it has some.

    `memory` is used where the cluster is planned as one. Raises what `plan` raises.
    """
    check(config)
    memory = memory or Memory()
    if indivisible(snapshot, config):
        return plan(snapshot, config, memory)
    found = _Reconciled(snapshot, config, plan_all, memory).plan()
    return plan(snapshot, config, memory) if found is None else found


class _Reconciled:
    """One cluster while its parts are planned."""

    def __init__(self, snapshot: Snapshot, config: PlanConfig, plan_all: PlanAll, memory: Memory) -> None:
        self._snapshot = snapshot
        self._config = config
        self._plan_all = plan_all
        self._names = queue_of(snapshot, config)
        self._order = {name: place for place, name in enumerate(self._names)}
        self._choices = _choices(snapshot, config, memory)
        held_back = protected(snapshot.jobs, snapshot.now, config) | out_of_own_budget(snapshot, config)
        preempts = config.mode == "round" and config.policy != "best-effort"
        self._stays = frozenset(
            job.name for job in snapshot.jobs if not preempts or not job.preemptible or job.name in held_back
        )
        budgets = any(tenant.preemptions_per_hour is not None for tenant in snapshot.tenants)
        self._may_leave = config.queues.promote_knob is None and not budgets
        """A running job may be planned as one that waits: nothing counts what it waits or that it is preempted."""
        self._known: dict[frozenset[str], tuple[Snapshot, Plan]] = {}
        """By GPU types, the part and its plan in the last pass."""

    def plan(self) -> Plan | None:
        """The plan; None where the cluster must be planned as one."""
        own = self._homes()
        tried = {name: {home} for name, home in own.items()}
        for _ in range(_PASSES):
            divided = parts(self._snapshot, own)
            if len(divided) < 2:
                return None
            left = self._left(own)
            if left and not self._may_leave:
                return None
            found = joined(self._planned(divided), self._order, left)
            wanted = self._envious(found, own, left)
            reasons = {one.job: one.reason for one in found.waiting if one.job in wanted}
            moves = {}
            for name, types in wanted.items():
                new = next((one for one in types if one not in tried[name]), None)
                if new is not None:
                    moves[name] = new
                elif not is_limited(reasons.get(name, "")):
                    return None
            if not moves:
                return grown(self._snapshot, self._config, found)
            for name, new in moves.items():
                tried[name].add(new)
                own[name] = new
        return None

    def _envious(self, found: Plan, own: Mapping[str, str], left: Mapping[str, Job]) -> dict[str, list[str]]:
        types = {name: job.running.gpu_type for name, job in left.items() if job.running is not None}
        return envious(self._snapshot, found, self._order, self._choices, own, left=types, gives_way=self._gives_way)

    def _left(self, own: Mapping[str, str]) -> dict[str, Job]:
        """Running jobs that have a home on another type."""
        return {
            job.name: job
            for job in self._snapshot.jobs
            if job.running is not None and own.get(job.name, job.running.gpu_type) != job.running.gpu_type
        }

    def _gives_way(self, job: Job) -> bool:
        return job.name not in self._stays

    def _homes(self) -> dict[str, str]:
        if not self._choices:
            return {}
        by_name = {job.name: job for job in self._snapshot.jobs}
        queue = [by_name[name] for name in self._names]
        return homes(self._snapshot, queue, self._choices, mode=self._config.mode, gives_way=self._gives_way)

    def _planned(self, divided: Sequence[Snapshot]) -> list[Plan]:
        """The plans of the parts; of those that are as they were, the ones that are known."""
        types = [frozenset(node.gpu_type for node in part.nodes) for part in divided]
        known = [self._known.get(one) for one in types]
        new = [
            part for part, before in zip(divided, known, strict=True) if before is None or before[0].jobs != part.jobs
        ]
        made = iter(zip(new, self._plan_all(new, self._config), strict=True))
        found = [
            before if before is not None and before[0].jobs == part.jobs else next(made)
            for part, before in zip(divided, known, strict=True)
        ]
        self._known = dict(zip(types, found, strict=True))
        return [one for _, one in found]


def _choices(snapshot: Snapshot, config: PlanConfig, memory: Memory) -> Mapping[str, Sequence[str]]:
    """The GPU types of each job that may run on several, the one that it would take first in front."""
    type_of = {node.name: node.gpu_type for node in snapshot.nodes}
    types = sorted(set(type_of.values()))
    open_ = [job for job in snapshot.jobs if len(job.gpu_types) != 1 and _has_choice(job, type_of, types)]
    if not open_:
        return {}
    memory.begin(nodes_of(snapshot, config.mode), config.demand_tolerance, PackRules.of(config))
    memory.speeds.begin(snapshot.jobs, memory.pools, config.estimate)
    found: dict[str, Sequence[str]] = {}
    for job in open_:
        allowed = may_use(job, type_of, types)
        in_order = [pool.gpu_type for pool in fastest_first(QueueEntry(memory.info(job)), memory.pools)]
        found[job.name] = [one for one in in_order if one in allowed]
    return found


def _has_choice(job: Job, type_of: Mapping[str, str], types: Sequence[str]) -> bool:
    """It may run on several types; if it runs, where it is on nodes of one of them only."""
    allowed = may_use(job, type_of, types)
    if len(allowed) < 2 or job.deadline_s is not None or job.quotas or job.urgent:
        return False
    held = set() if job.running is None else {job.running.gpu_type, *(type_of.get(s.node) for s in job.running.workers)}
    return not held or (len(held) == 1 and held <= set(allowed))
