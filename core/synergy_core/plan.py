"""The planner: a pure function from the state of a cluster to the jobs that run, their nodes and resources.

Its steps are the packages of `synergy_core`, in the order in which data flows; none calls back into an earlier one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from synergy_core.cache import Memory
from synergy_core.checks import check
from synergy_core.colocation.combinations import Combinations
from synergy_core.colocation.grouping import Candidate, Grouping
from synergy_core.explain.answer import answer, counted
from synergy_core.growth.grow import with_growth
from synergy_core.mechanisms import MECHANISMS
from synergy_core.mechanisms.mechanism import Outcome
from synergy_core.mechanisms.whole_gpus import whole_gpus
from synergy_core.model.answer import Plan
from synergy_core.model.cluster import nodes_of
from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Allocation, Snapshot
from synergy_core.model.tenant_tree import TenantTree
from synergy_core.policies.allocation.solutions import Solutions
from synergy_core.policies.queue import Ranking
from synergy_core.policies.ranking import rank, shares_by_matrix
from synergy_core.selection.colocation_groups import NO_GROUPS, CoLocationGroups, candidate_groups, colocation_groups
from synergy_core.selection.preemption.budgets import TenantBudgets, out_of_own_budget
from synergy_core.selection.preemption_protection import least_run_s, protected
from synergy_core.selection.quotas import Quotas
from synergy_core.selection.round import Round
from synergy_core.selection.scheduling_queue import JobIndex, SchedulingQueue, out_of_reach
from synergy_core.selection.shut_out import shut_out
from synergy_core.selection.staying.islands import PackedRounds
from synergy_core.throughput.skew import PackRules
from synergy_core.urgent import with_urgent


def plan(snapshot: Snapshot, config: PlanConfig, memory: Memory | None = None) -> Plan:
    """Plan a round, or fill free capacity (`config.mode`).

    Deterministic, and independent of the order of nodes and jobs in the snapshot. The `memory` of the caller's earlier
    plans makes it faster, with the same answer. Raises FieldError when the configuration names a policy or
    mechanism that there is not, or a value is out of range.
    """
    check(config)
    memory = memory or Memory()
    names, planned = _planned(snapshot, config, memory)
    served = with_urgent(
        snapshot, config, names, planned, lambda reduced, head: _planned(reduced, config, memory, head)[1]
    )
    return grown(snapshot, config, served, memory)


def grown(snapshot: Snapshot, config: PlanConfig, made: Plan, memory: Memory | None = None) -> Plan:
    """The plan, with the nodes to ask for. The `memory` is that of the plan."""
    larger_ones = Memory(memory)
    return with_growth(snapshot, config, made, lambda larger, filling: _planned(larger, filling, larger_ones)[1])


def queue_of(snapshot: Snapshot, config: PlanConfig) -> tuple[str, ...]:
    """The order of all jobs under a policy that looks at jobs alone: at no node, no speed and no other job."""
    return rank(
        snapshot,
        config,
        pools=(),
        speeds=JobIndex((), Memory()),
        grouping=Grouping(Snapshot(nodes=(), jobs=()), (), config),
        pairs=None,
        solutions=Solutions(),
        tenants=TenantTree(snapshot.tenants),
    ).names


def _planned(
    snapshot: Snapshot, config: PlanConfig, memory: Memory, head: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], Plan]:
    """The queue, and the plan, with these jobs at the head of the queue."""
    # 1. The cluster: nodes by GPU type, with the capacity left.
    memory.begin(nodes_of(snapshot, config.mode), config.demand_tolerance, PackRules.of(config))

    # 2. The jobs, each with its throughput on each GPU type; without those that their quotas leave no room for.
    memory.speeds.begin(snapshot.jobs, memory.pools, config.estimate)
    quotas = Quotas(snapshot.quotas, snapshot.jobs)
    excluded = shut_out(snapshot, quotas, memory)
    planned = _without(snapshot, excluded)
    job_index = JobIndex(planned.jobs, memory)

    # 3. Which jobs may share a GPU.
    grouping = Grouping(planned, memory.pools, config, memory.speeds)
    pairs = Combinations(grouping, memory.pairs) if shares_by_matrix(config) else None

    tenants = TenantTree(snapshot.tenants)

    # 4. The policy: which jobs should run, in order, with the GPU types that each may use.
    ranking = rank(
        planned,
        config,
        pools=memory.pools,
        speeds=job_index,
        grouping=grouping,
        pairs=pairs,
        solutions=memory.solutions,
        tenants=tenants,
    ).led_by(head)

    kept = out_of_reach(job_index.running, config.mode)
    budgets = TenantBudgets(snapshot)
    young, spent = protected(snapshot.jobs, snapshot.now, config), out_of_own_budget(snapshot, config)
    limited = snapshot.quotas or tenants or budgets or young or spent or kept or memory.speeds.estimates
    if not limited and config.colocation == "none":  # a shorter way through 5. to 7., where it leads to the same plan
        whole = whole_gpus(job_index, ranking, memory.pools, config)
        if whole is not None:
            return ranking.names, counted(snapshot, config, ranking=ranking, found=whole, speeds=job_index)
    held_back: frozenset[str] = frozenset()
    while True:  # which jobs a plan preempts, and so which budgets it exceeds, only the plan itself tells
        # 5. and 6. Which jobs run this round, on which nodes, with how much CPU and memory.
        groups, outcome = _placed(
            planned,
            config,
            memory,
            job_index,
            ranking,
            young=young,
            spent=spent | held_back,
            budgets=budgets,
            grouping=grouping,
            kept=kept,
            quotas=quotas,
            tenants=tenants,
        )

        # 7. The answer, with why the other jobs wait.
        found = answer(
            snapshot,
            config,
            ranking=ranking,
            outcome=outcome,
            groups=groups,
            kept=kept,
            shut_out=excluded,
            estimates=memory.speeds,
            speeds=job_index,
        )
        more = budgets.held_back(found, ranking.names, young | spent | held_back) if budgets else frozenset()
        if not more:
            return ranking.names, found
        held_back |= more


def _without(snapshot: Snapshot, excluded: Mapping[str, object]) -> Snapshot:
    """The snapshot as if these jobs did not exist."""
    if not excluded:
        return snapshot
    return replace(snapshot, jobs=tuple(job for job in snapshot.jobs if job.name not in excluded))


def _placed(
    snapshot: Snapshot,
    config: PlanConfig,
    memory: Memory,
    job_index: JobIndex,
    ranking: Ranking,
    *,
    young: frozenset[str],
    spent: frozenset[str],
    budgets: TenantBudgets,
    grouping: Grouping,
    kept: Mapping[str, Allocation],
    quotas: Quotas,
    tenants: TenantTree,
) -> tuple[CoLocationGroups, Outcome]:
    """Steps 5 and 6: selects and places the queue of `ranking`.

    Where few of a type's GPUs can be shared, a group may find no GPU that its members would find alone. Only the
    mechanism knows, so the steps are repeated without such groups; each time there are fewer.
    """
    pools = memory.pools
    candidates: Sequence[Candidate] = candidate_groups(snapshot, ranking, config, grouping, protected=young | spent)
    while True:
        groups = colocation_groups(snapshot, ranking, pools, config, candidates)
        planned = job_index if groups is NO_GROUPS else JobIndex(groups.jobs(snapshot.jobs), memory)
        queue = planned.queue(
            groups.ranking(ranking),
            without=kept,
            protected=groups.planned(young | spent),
            least_run_s=lambda job: least_run_s(job, config),
            wants_shared=grouping.wants_shared,
            pods_matter=quotas.pods_matter,
        )
        outcome = MECHANISMS[config.mechanism](
            _round(
                queue,
                pools,
                config,
                ranking,
                quotas=quotas,
                tenants=tenants.with_groups(groups.members_by_name),
                budgets=budgets,
                spent=groups.planned(spent),
                packed=memory.packed,
            )
        )
        unassigned = groups.unassigned(*_assigned_and_idle(outcome, pools), outcome.full) if candidates else ()
        if not unassigned:
            return groups, outcome
        candidates = [one for one in candidates if frozenset(job.name for job in one.jobs) not in unassigned]


def _round(
    queue: SchedulingQueue,
    pools: Sequence[Pool],
    config: PlanConfig,
    ranking: Ranking,
    *,
    quotas: Quotas,
    tenants: TenantTree,
    budgets: TenantBudgets,
    spent: frozenset[str],
    packed: PackedRounds,
) -> Round:
    profile_gpus = sum(sum(pool.gpus) for pool in pools) * config.profile_gpu_percent // 100
    fair = tenants.guarantees and ranking.preempts and not ranking.divides and not ranking.strict
    return Round(
        queue,
        pools,
        config.mode,
        profile_gpus,
        config.explain,
        quotas,
        tenants,
        fair,
        budgets,
        spent,
        packed={} if config.mode == "fill" or quotas.limits else packed.of(config.mechanism, pools),
    )


def _assigned_and_idle(outcome: Outcome, pools: Sequence[Pool]) -> tuple[frozenset[str], frozenset[str]]:
    """Planned jobs that have GPUs, and the GPU types with free ones."""
    assigned = frozenset(entry.name for packing in outcome.packings for entry in packing.assigned)
    free = {pool.gpu_type: pool.open_gpus[0] for pool in pools}
    free |= {packing.pool.gpu_type: int(packing.reservations.slots.sum()) for packing in outcome.packings}
    return assigned, frozenset(gpu_type for gpu_type, gpus in free.items() if gpus > 0)
