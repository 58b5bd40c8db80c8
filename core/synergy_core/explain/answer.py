"""The plan, from what was placed and why the other jobs wait."""

from collections.abc import Iterable, Mapping

from synergy_core.explain.late import late_jobs
from synergy_core.explain.waiting import waiting
from synergy_core.mechanisms.mechanism import Outcome
from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.mechanisms.whole_gpus import WholeGpus
from synergy_core.model.answer import Displaced, Plan, Waiting
from synergy_core.model.config import PlanConfig
from synergy_core.model.reasons import NO_FACTS
from synergy_core.model.resources import node_share
from synergy_core.model.snapshot import Allocation, Job, Snapshot
from synergy_core.policies.queue import Ranking
from synergy_core.policies.ranking import JobSpeeds
from synergy_core.selection.colocation_groups import NO_GROUPS, CoLocationGroups
from synergy_core.selection.preemption.losses import Cause
from synergy_core.selection.shut_out import ShutOut
from synergy_core.throughput.estimates import Speeds
from synergy_core.throughput.threads import kept_alone, least_percent


def answer(
    snapshot: Snapshot,
    config: PlanConfig,
    *,
    ranking: Ranking,
    outcome: Outcome,
    groups: CoLocationGroups,
    kept: dict[str, Allocation],
    shut_out: Mapping[str, ShutOut],
    estimates: Speeds,
    speeds: JobSpeeds,
) -> Plan:
    """The plan. `kept` are jobs on nodes that are gone, `shut_out` jobs that their quotas leave no room for."""
    running = [job for job in snapshot.jobs if job.running is not None]
    given = {a.job: a for packing in outcome.packings for a in _allocations(packing, config, groups, estimates)} | kept
    ended = tuple(sorted(job.name for job in running if _run_ends(job, given.get(job.name), groups)))
    return Plan(
        allocations=tuple(given[name] for name in sorted(given)),
        waiting=_waiting(outcome, groups, shut_out) if config.explain else (),
        preempted=ended,
        resized=tuple(sorted(job.name for job in running if _is_resized(job, given.get(job.name), groups))),
        policy=config.policy,
        mechanism=config.mechanism,
        promoted=ranking.promoted,
        late=late_jobs(snapshot.jobs, snapshot.now, speeds.best_speed, ranking.colliding),
        estimates=estimates.estimates,
        shares_from=ranking.shares_from,
        isolated=ranking.isolated,
        displaced=_displaced(outcome, groups, frozenset(ended)),
    )


def counted(snapshot: Snapshot, config: PlanConfig, *, ranking: Ranking, found: WholeGpus, speeds: JobSpeeds) -> Plan:
    """The plan of a round in which only numbers of GPUs matter."""
    given = found.allocations
    ended = {job.name for job in snapshot.jobs if job.running is not None and given.get(job.name) is not job.running}
    return Plan(
        allocations=tuple([given[name] for name in sorted(given)]),
        waiting=(),
        preempted=tuple(sorted(ended)),
        resized=(),
        policy=config.policy,
        mechanism=config.mechanism,
        promoted=ranking.promoted,
        late=late_jobs(snapshot.jobs, snapshot.now, speeds.best_speed, ranking.colliding),
        shares_from=ranking.shares_from,
        isolated=ranking.isolated,
        displaced=tuple(
            Displaced(name, Cause.ORDER.value, (by,)) for name, by in found.losses.items() if name in ended
        ),
    )


def _displaced(outcome: Outcome, groups: CoLocationGroups, ended: frozenset[str]) -> tuple[Displaced, ...]:
    return tuple(
        Displaced(member, loss.cause.value, () if loss.by is None else groups.names_of(loss.by))
        for name, loss in outcome.losses.items()
        for member in groups.names_of(name)
        if member in ended
    )


def _waiting(outcome: Outcome, groups: CoLocationGroups, shut_out: Mapping[str, ShutOut]) -> tuple[Waiting, ...]:
    """Entries in the order of the queue, those that their quotas shut out last."""
    placed = (
        waiting(job, reason, outcome.full.get(one.name, NO_FACTS))
        for one, reason in outcome.waiting
        for job in groups.members(one.job)
    )
    by_arrival = sorted(shut_out.values(), key=lambda one: (one.job.arrival_s, one.job.name))
    return (*placed, *(waiting(one.job, one.reason, one.facts) for one in by_arrival))


def _allocations(
    packing: Packing, config: PlanConfig, groups: CoLocationGroups, speeds: Speeds
) -> Iterable[Allocation]:
    planned = _of_planned(packing, config, speeds)
    if groups is NO_GROUPS:
        return planned
    return (one for given in planned for one in groups.allocations(given, packing.pool))


def _of_planned(packing: Packing, config: PlanConfig, speeds: Speeds) -> Iterable[Allocation]:
    pool = packing.pool
    for entry, assigned in packing.assigned.items():
        terms, running, held = entry.on(pool), entry.job.running, entry.held
        as_it_was = held is not None and held.pool is pool and held.reservation == assigned.shares
        unchanged = as_it_was and running is not None and not running.shares_gpu_with  # it may have had partners
        if config.mode == "fill" and running is not None and unchanged:
            yield running
            continue
        speed, usual = terms.steps_per_s(assigned.per_gpu), terms.steps_per_s(pool.share_on(assigned.nodes))
        if pool.limits_threads:
            threads = least_percent(pool.nodes[node] for node in assigned.nodes)
            part = kept_alone(entry.job, pool.gpu_type, threads)
            speed = terms.with_threads(assigned.per_gpu, part)
            usual = terms.with_threads(pool.share_on(assigned.nodes), part)
        estimated = speeds.is_estimated(entry.name, pool.gpu_type)
        spread = config.placement_sensitive and entry.gpus > 1 and entry.info.lies_spread(assigned.assignments, pool)
        if (
            running is not None
            and unchanged
            and (running.steps_per_s, running.proportional_steps_per_s) == (speed, usual)
            and (running.estimated, running.spread) == (estimated, spread)
        ):
            yield running
            continue
        yield Allocation(
            job=entry.name,
            gpu_type=pool.gpu_type,
            workers=tuple(
                node_share(pool.nodes[node].name, gpus, amounts, pool.further)
                for node, gpus, amounts in assigned.shares
            ),
            steps_per_s=speed,
            proportional_steps_per_s=usual,
            estimated=estimated,
            spread=spread,
        )


def _run_ends(job: Job, given: Allocation | None, groups: CoLocationGroups) -> bool:
    if job.running is None or given is job.running:
        return False
    return given is None or _place(given) != _place(job.running) or groups.leaves(job)


def _is_resized(job: Job, given: Allocation | None, groups: CoLocationGroups) -> bool:
    if job.running is None or given is None or given is job.running or _run_ends(job, given, groups):
        return False
    return set(given.workers) != set(job.running.workers)


def _place(allocation: Allocation) -> frozenset[tuple[str, int]]:
    return frozenset((share.node, share.gpus) for share in allocation.workers)
