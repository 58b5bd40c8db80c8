"""From the cluster to the planner's Snapshot. Pure: the same cluster and moment give the same snapshot."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from synergy_api.amounts import NOTHING
from synergy_api.reasons import Finding, Reason, say
from synergy_core.model import snapshot as core
from synergy_core.model.config import Mode
from synergy_extender.cluster.run_state import RunState, open_run, run_state
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.snapshot.entitlements import Entitlements
from synergy_extender.snapshot.known.snapshot import KnownSnapshot
from synergy_extender.snapshot.node_groups import node_groups
from synergy_extender.snapshot.nodes import takes_new
from synergy_extender.snapshot.planned_jobs import PlannedJobs, has_full_room
from synergy_extender.snapshot.preemption_budgets import preempted_lately, with_budgets
from synergy_extender.snapshot.quotas import NamespaceQuotas
from synergy_extender.snapshot.times import Clocks, snapshot_at
from synergy_extender.snapshot.used_room import overdue, used_room
from synergy_extender.tenants.planned import planned_tenants
from synergy_extender.tenants.uses import tree_of

_IN_PLANS = (RunState.WAITING, RunState.HOLDING, RunState.LEAVING)


@dataclass(frozen=True)
class BuiltSnapshot:
    """A snapshot, the jobs that are left out of it with the reason, and what the tenants' caps allow jobs."""

    base: core.Snapshot
    """The snapshot, each job with the times of when something else of it was last worked out."""
    clocks: Clocks
    """From what the present times follow."""
    refused: Mapping[Key, Finding] = field(default_factory=dict)
    entitled: Entitlements = field(default_factory=Entitlements)

    @cached_property
    def snapshot(self) -> core.Snapshot:
        """With the times of its moment."""
        return snapshot_at(self.base, self.clocks)


@dataclass
class _Asked:
    """What jobs ask of the plan. `refused` are left out, with the reason; `resting` ask for what they asked before."""

    jobs: list[core.Job] = field(default_factory=list)
    refused: dict[Key, Finding] = field(default_factory=dict)
    resting: dict[Key, JobView] = field(default_factory=dict)


def build_snapshot(
    state: ClusterState,
    *,
    mode: Mode,
    now: float,
    round_s: int,
    reserved: Mapping[Key, core.Allocation] | None = None,
    tenants: tuple[core.Tenant, ...] = (),
    left_out: Mapping[Key, Finding] | None = None,
    leaving_s: float = 0.0,
    known: KnownSnapshot | None = None,
) -> BuiltSnapshot:
    """The snapshot at `now`. `reserved` are the places kept, in fill mode, for jobs that move there once they left;
    `tenants` are those that the policy names; other tenants of jobs are added, with a weight of 1. `left_out` are jobs
    that plans do without for now, with the reason: those that wait get no place, and of those that run the pods that
    are there count as used, since nothing can revoke them. `leaving_s` is the longest time for a checkpoint. `known` is
    what the last snapshots of the same caller leave for this one: it saves time and changes nothing."""
    known = known or KnownSnapshot()
    kept = reserved if reserved is not None and mode == "fill" else {}
    entitled = known.entitled.of(state.jobs, state.tenancy, now, state.classes)
    unwritten = left_out or {}
    requests = PlannedJobs(state, now, kept, entitled, known.jobs)
    asked = _asked(state, now, requests, entitled, unwritten=unwritten, known=known)
    jobs = asked.jobs
    planned = {job.name for job in jobs}
    used = used_room(state, mode, now, planned, kept, unwritten=unwritten, runs=known.runs, resting=asked.resting)
    jobs = [job for job in jobs if job.purpose == "train" or job.running or has_full_room(job, state, used)]
    planned = {job.name for job in jobs}
    known.nodes.begin()
    nodes = tuple(
        known.nodes.of(
            capacity,
            used.get(capacity.name, NOTHING),
            open_to_new=takes_new(capacity, state, mode),
            now=now,
            leaving_s=leaving_s,
        )
        for capacity in state.capacities
        if capacity.gpu_type
    )
    quotas = NamespaceQuotas(state)
    if quotas:
        jobs = quotas.with_draws(jobs, {str(key): job for key, job in state.jobs.items()})
    snapshot = core.Snapshot(
        nodes=nodes,
        jobs=tuple(jobs),
        now=now,
        round_s=float(round_s),
        tenants=with_budgets(
            planned_tenants(tenants, {job.tenant for job in jobs if job.tenant}, tree_of(state)),
            state.tenancy,
            preempted_lately(state.jobs, entitled, planned, now),
        ),
        node_groups=node_groups(state, now),
        quotas=quotas.limits(_moved(state, mode, now, planned)),
    )
    return BuiltSnapshot(snapshot, known.jobs.clocks, asked.refused, entitled)


def _asked(
    state: ClusterState,
    now: float,
    requests: PlannedJobs,
    entitled: Entitlements,
    *,
    unwritten: Mapping[Key, Finding],
    known: KnownSnapshot,
) -> _Asked:
    asked = _Asked()
    for key in known.jobs.in_order(state.jobs):
        job = state.jobs[key]
        if (
            job.at_rest
            and key not in unwritten
            and (rested := known.jobs.at_rest(job, entitled.by_job[key])) is not None
        ):
            if rested.request is not None:
                asked.jobs.append(rested.request)
                asked.resting[key] = job
            continue
        stands = run_state(job, now)
        if key in unwritten and stands in _IN_PLANS:
            asked.refused[key] = unwritten[key]
            continue
        if key in entitled.waits and stands is RunState.WAITING:
            asked.refused[key] = entitled.waits[key]
            continue
        try:
            request = requests.of(job)
        except core.FieldError as error:
            asked.refused[key] = say(Reason.CANNOT_BE_PLANNED, problem=str(error))
            continue
        if request is not None:
            asked.jobs.append(request)
            if job.at_rest:
                known.jobs.rests(job, entitled.by_job[key], request)
                asked.resting[key] = job
    return asked


def _moved(state: ClusterState, mode: Mode, now: float, planned: set[str]) -> Iterable[JobView]:
    """The jobs whose running pods the plan may move, or counts as gone by the time that its places start."""
    for job in state.jobs.values():
        allocation = open_run(job)
        if allocation is None:
            continue
        if run_state(job, now) is RunState.LEAVING:
            if mode == "round" and not overdue(allocation, now):
                yield job
        elif str(job.key) in planned:
            yield job
