"""The planner: one pure function from the state of a cluster to who runs where with what.

policy (who should run) -> rounds (who stays, enters, leaves) -> mechanism (CPU and memory, nodes) -> plan
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import get_args

from synergy_core.cache import Memory
from synergy_core.colocation.combinations import Combinations
from synergy_core.colocation.grouping import Grouping
from synergy_core.explain.late import late_jobs
from synergy_core.explain.waiting import waiting
from synergy_core.mechanisms import MECHANISMS
from synergy_core.mechanisms.mechanism import Outcome, Round
from synergy_core.mechanisms.statement import Packing
from synergy_core.model.answer import Plan, Waiting
from synergy_core.model.config import EstimateMode, PlanConfig
from synergy_core.model.pool import Pool
from synergy_core.model.reasons import NO_FACTS, Reason
from synergy_core.model.resources import node_share, with_more_used
from synergy_core.model.snapshot import Allocation, FieldError, Job, Node, Snapshot
from synergy_core.policies import POLICIES
from synergy_core.policies.queue import Pairs, Queue, Ranking
from synergy_core.policies.rounds.time_shares import NAMES, WITH_PAIRS
from synergy_core.selection.contender import Contender
from synergy_core.selection.diagnosis import never
from synergy_core.selection.line import Roster
from synergy_core.selection.quotas import QuotaLedger, Quotas
from synergy_core.selection.settling import least_run_s, settling
from synergy_core.selection.teams import NO_TEAMS, Teams, groups_of, teams_of
from synergy_core.throughput.estimates import Speeds
from synergy_core.throughput.skew import PackRules
from synergy_core.throughput.threads import kept_alone, least_percent


def plan(snapshot: Snapshot, config: PlanConfig, memory: Memory | None = None) -> Plan:
    """Plan a round, or fill free capacity (`config.mode`).

    Deterministic, and independent of the order of nodes and jobs in the snapshot. With the `memory` of the caller's
    earlier plans it is faster and the answer the same. Raises FieldError when the configuration names a policy or
    mechanism that there is not, or a value is out of range.
    """
    _check(config)
    memory = memory or Memory()
    nodes = _with_strangers(snapshot) if config.mode == "fill" else snapshot.nodes
    memory.begin(nodes, config.demand_tolerance, PackRules.of(config))
    pools = memory.pools
    memory.speeds.begin(snapshot.jobs, pools, config.estimate)
    quotas = Quotas(snapshot.quotas, snapshot.jobs)
    shut_out = _shut_out(snapshot, quotas, memory)
    everyone = snapshot.jobs
    if shut_out:  # for all others they might as well not be there
        snapshot = replace(snapshot, jobs=tuple(job for job in snapshot.jobs if job.name not in shut_out))
    roster = Roster(snapshot.jobs, memory)
    kept = _out_of_reach(roster.running, config)
    grouping = Grouping(snapshot, pools, config, memory.speeds)
    pairs = Combinations(grouping, memory.pairs) if _by_matrix(config) else None
    ranking = _ranking(snapshot, roster, memory, config, pairs, grouping=grouping)
    groups = groups_of(snapshot, ranking, config, grouping)
    gpus = sum(sum(pool.gpus) for pool in pools)
    while True:  # each time with fewer groups
        teams = teams_of(snapshot, ranking, pools, config, groups)
        planned = roster if teams is NO_TEAMS else Roster(teams.jobs(snapshot.jobs), memory)
        line = planned.line(
            teams.ranking(ranking),
            without=kept,
            settling=teams.settling(settling(snapshot.jobs, snapshot.now, config)),
            least_run_s=lambda job: least_run_s(job, config),
            wants_shared=grouping.wants_shared,
        )
        round_ = Round(line, pools, config.mode, gpus * config.profile_gpu_percent // 100, config.explain, quotas)
        outcome = MECHANISMS[config.mechanism](round_)
        unseated = teams.unseated(*_seated_and_idle(outcome, pools), outcome.full) if groups else ()
        if not unseated:
            break
        groups = [group for group in groups if frozenset(job.name for job in group.jobs) not in unseated]
    running = [job for job in snapshot.jobs if job.running is not None]
    given = {
        a.job: a for packing in outcome.packings for a in _allocations(packing, config, teams, memory.speeds)
    } | kept
    return Plan(
        allocations=tuple(given[name] for name in sorted(given)),
        waiting=(
            *(
                waiting(job, reason, outcome.full.get(one.name, NO_FACTS))
                for one, reason in outcome.waiting
                for job in teams.members(one.job)
            ),
            *shut_out.values(),
        )
        if config.explain
        else (),
        preempted=tuple(sorted(job.name for job in running if _run_ends(job, given.get(job.name), teams))),
        resized=tuple(sorted(job.name for job in running if _is_resized(job, given.get(job.name), teams))),
        policy=config.policy,
        mechanism=config.mechanism,
        promoted=ranking.promoted,
        late=late_jobs(everyone, snapshot.now, roster.best_speed, ranking.colliding),
        estimates=memory.speeds.estimates,
        shares_from=ranking.shares_from,
        isolated=ranking.isolated,
    )


def _shut_out(snapshot: Snapshot, quotas: Quotas, memory: Memory) -> dict[str, Waiting]:
    """By name, the waiting jobs that their quotas leave no room for, whatever the plan does, and what they hear."""
    found: dict[str, Waiting] = {}
    for job in snapshot.jobs if snapshot.quotas else ():
        if job.running is not None or not job.quotas:
            continue
        contender = memory.contender(job)
        if not quotas.shut_out(contender, memory.pools):
            continue
        ledger = QuotaLedger(quotas)
        allowed = next(pool for pool in memory.pools if contender.may_use(pool))
        ledger.note_full(contender, quotas.least_of_newcomer(contender, allowed))
        reason = never(contender, memory.pools) or Reason.QUOTA_FULL
        found[job.name] = waiting(job, reason, ledger.full[job.name])
    return found


def _seated_and_idle(outcome: Outcome, pools: Iterable[Pool]) -> tuple[frozenset[str], frozenset[str]]:
    """Who has GPUs, and the types that have some that nobody has."""
    seated = frozenset(contender.name for packing in outcome.packings for contender in packing.seated)
    free = {pool.gpu_type: pool.open_gpus[0] for pool in pools}
    free |= {packing.pool.gpu_type: int(packing.reservations.slots.sum()) for packing in outcome.packings}
    return seated, frozenset(gpu_type for gpu_type, gpus in free.items() if gpus > 0)


def _check(config: PlanConfig) -> None:
    known: tuple[tuple[str, str, Iterable[str]], ...] = (
        ("policy", config.policy, POLICIES),
        ("mechanism", config.mechanism, MECHANISMS),
        ("mode", config.mode, ("round", "fill")),
        ("estimate", config.estimate, get_args(EstimateMode)),
    )
    for name, value, choices in known:
        if value not in choices:
            raise FieldError(name, f"{value!r} is not there; choose one of {', '.join(sorted(choices))}")
    if config.colocation == "gavel" and config.policy not in WITH_PAIRS:
        problem = f"gavel shares by an allocation matrix, and {config.policy} has none with pairs; choose another mode"
        raise FieldError("colocation", f"{problem}, or a policy of {', '.join(sorted(WITH_PAIRS))}")
    if config.placement_sensitive and config.policy not in NAMES:
        problem = f"{config.policy} has no allocation matrix; leave it out, or choose a policy of {', '.join(NAMES)}"
        raise FieldError("placement_sensitive", problem)
    if not 0 <= config.profile_gpu_percent <= 100:
        raise FieldError("profile_gpu_percent", f"must be from 0 to 100, is {config.profile_gpu_percent}")
    for name, least in (("minimum_run_s", config.minimum_run_s), ("preemption_payback", config.preemption_payback)):
        if not 0.0 <= least < inf:
            raise FieldError(name, f"must be at least 0 and finite, is {least}")
    if config.pack_limit is not None and not config.pack_limit >= 0.0:
        raise FieldError("pack_limit", f"must be at least 0, is {config.pack_limit}")
    if config.link_bytes_per_s is not None and not config.link_bytes_per_s > 0.0:
        raise FieldError("link_bytes_per_s", f"must be above 0, is {config.link_bytes_per_s}")
    if not 0.0 <= config.demand_tolerance < 1.0:
        raise FieldError("demand_tolerance", f"must be at least 0 and below 1, is {config.demand_tolerance}")


def _by_matrix(config: PlanConfig) -> bool:
    """Whether an allocation matrix says who shares. Under `fifo` a line does, unless the matrix is asked for: it would
    give jobs other GPUs and partners from round to round, and who asks for a line wants to stay."""
    if config.colocation == "auto":
        return config.policy in WITH_PAIRS - {"fifo"}
    return config.colocation == "gavel"


def _with_strangers(snapshot: Snapshot) -> tuple[Node, ...]:
    """The nodes; what jobs hold that started when a node had another GPU type counts as held by others."""
    nodes = {node.name: node for node in snapshot.nodes}
    for job in snapshot.jobs:
        for share in job.running.workers if job.running is not None else ():
            node = nodes.get(share.node)
            if job.running is not None and node is not None and node.gpu_type != job.running.gpu_type:
                nodes[share.node] = with_more_used(node, share)
    return tuple(nodes.values())


def _out_of_reach(contenders: Iterable[Contender], config: PlanConfig) -> dict[str, Allocation]:
    """Fill mode keeps also jobs that run on nodes which are no longer there."""
    if config.mode != "fill":
        return {}
    running = {contender.name: contender.job.running for contender in contenders if contender.held is None}
    return {name: allocation for name, allocation in running.items() if allocation is not None}


def _ranking(
    snapshot: Snapshot, roster: Roster, memory: Memory, config: PlanConfig, pairs: Pairs | None, *, grouping: Grouping
) -> Ranking:
    """Who was promoted, profile runs by arrival, then the policy's line."""
    queue = Queue(
        now=snapshot.now,
        jobs=snapshot.jobs,
        steps_per_s=roster.best_speed,
        gpus=sum(node.gpus for node in snapshot.nodes),
        queues=config.queues,
        speeds=lambda job: _as_clients(job, roster.speeds(job), grouping),
        gpus_of={pool.gpu_type: pool.open_gpus[0] for pool in memory.pools},
        aware=config.aware,
        round_s=snapshot.round_s,
        prices=_prices(memory.pools),
        speed_parts=roster.speed_parts if config.placement_sensitive else lambda _: {},
        tenants=snapshot.tenants,
        solutions=memory.solutions,
        pairs=pairs,
    )
    ranking = POLICIES[config.policy](queue)
    if config.mode == "fill":  # nobody moves, and whatever is free is better used than not until the round ends
        ranking = replace(ranking, types=_idle(snapshot, ranking) if ranking.leaves_idle else {}, lies={})
    profile_runs = [job for job in snapshot.jobs if job.purpose == "profile"]
    if not profile_runs:
        return ranking
    profile_runs.sort(key=lambda job: (job.arrival_s, job.name))
    first = dict.fromkeys([*ranking.first, *(job.name for job in profile_runs)])
    return replace(ranking, names=(*first, *(name for name in ranking.names if name not in first)))


def _as_clients(job: Job, speeds: Mapping[str, float], grouping: Grouping) -> Mapping[str, float]:
    """Speeds by GPU type where the job shares with nobody, with the threads that it has then."""
    if not grouping.limits_threads:
        return speeds  # jobs of one kind have one mapping, which policies look into once
    return {gpu_type: speed * grouping.alone(job, gpu_type) for gpu_type, speed in speeds.items()}


def _prices(pools: Iterable[Pool]) -> dict[str, float]:
    """Price of a GPU for an hour on average over the nodes of its type; 0 where a node with GPUs has none."""
    found: dict[str, float] = {}
    for pool in pools:
        nodes = [node for node in pool.nodes if node.gpus > 0]
        known = all(node.price_per_hour > 0 for node in nodes)
        gpus = sum(node.gpus for node in nodes)
        found[pool.gpu_type] = sum(node.price_per_hour * node.gpus for node in nodes) / gpus if known and gpus else 0.0
    return found


def _idle(snapshot: Snapshot, ranking: Ranking) -> dict[str, tuple[str, ...]]:
    """Between rounds who runs stays; who waits may have the GPUs that its policy thinks worth it."""
    running = {job.name for job in snapshot.jobs if job.running is not None}
    return {name: types for name, types in ranking.types.items() if name not in running}


def _allocations(packing: Packing, config: PlanConfig, teams: Teams, speeds: Speeds) -> Iterable[Allocation]:
    for given in _of_planned(packing, config, speeds):
        yield from teams.allocations(given, packing.pool)


def _of_planned(packing: Packing, config: PlanConfig, speeds: Speeds) -> Iterable[Allocation]:
    pool = packing.pool
    for contender, seat in packing.seated.items():
        terms, running, held = contender.on(pool), contender.job.running, contender.held
        as_it_was = held is not None and held.pool is pool and held.booking == seat.shares
        unchanged = as_it_was and running is not None and not running.partners  # who had partners has none any more
        if config.mode == "fill" and running is not None and unchanged:
            yield running
            continue
        speed, usual = terms.steps_per_s(seat.per_gpu), terms.steps_per_s(pool.share_on(seat.nodes))
        if pool.limits_threads:
            threads = least_percent(pool.nodes[node] for node in seat.nodes)
            part = kept_alone(contender.job, pool.gpu_type, threads)
            speed = terms.with_threads(seat.per_gpu, part)
            usual = terms.with_threads(pool.share_on(seat.nodes), part)
        estimated = speeds.is_estimated(contender.name, pool.gpu_type)
        spread = config.placement_sensitive and contender.gpus > 1 and contender.lies_spread(seat.seats, pool)
        if (
            running is not None
            and unchanged
            and (running.steps_per_s, running.proportional_steps_per_s) == (speed, usual)
            and (running.estimated, running.spread) == (estimated, spread)
        ):
            yield running
            continue
        yield Allocation(
            job=contender.name,
            gpu_type=pool.gpu_type,
            workers=tuple(
                node_share(pool.nodes[node].name, gpus, amounts, pool.further) for node, gpus, amounts in seat.shares
            ),
            steps_per_s=speed,
            proportional_steps_per_s=usual,
            estimated=estimated,
            spread=spread,
        )


def _run_ends(job: Job, given: Allocation | None, teams: Teams) -> bool:
    if job.running is None or given is job.running:
        return False
    return given is None or _place(given) != _place(job.running) or teams.leaves(job)


def _is_resized(job: Job, given: Allocation | None, teams: Teams) -> bool:
    if job.running is None or given is None or given is job.running or _run_ends(job, given, teams):
        return False
    return set(given.workers) != set(job.running.workers)


def _place(allocation: Allocation) -> frozenset[tuple[str, int]]:
    return frozenset((share.node, share.gpus) for share in allocation.workers)
