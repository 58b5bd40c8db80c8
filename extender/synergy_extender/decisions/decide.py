"""From a plan to changes of status. Pure: cluster, plan and clock in, changes out."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from synergy_api.leaving import leave_seconds
from synergy_api.parts.progress import SpeedEstimate
from synergy_api.parts.waiting import Late
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_api.resources.training_job import FINISHED
from synergy_api.timestamps import parse_time
from synergy_core.model import snapshot as core
from synergy_core.model.answer import Plan
from synergy_core.model.config import Mode
from synergy_extender.cluster.ledger import AssumedBindings, Ledger
from synergy_extender.cluster.revocation import PODS_NOT_STARTED, Revocation
from synergy_extender.cluster.run_state import RunState, next_run, open_run, run_state, size_limits
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key, PodView
from synergy_extender.colocation.devices import Capacities, shares_of
from synergy_extender.colocation.measured import parting
from synergy_extender.colocation.partners import Coming, movers
from synergy_extender.decisions import allocations as places
from synergy_extender.decisions.admission import admit
from synergy_extender.decisions.allocations import Purpose
from synergy_extender.decisions.changes import ChangeKind, Draft, StatusChange
from synergy_extender.decisions.history import is_over
from synergy_extender.decisions.queue import queue_of
from synergy_extender.decisions.shared_admission import ByOrder, tell_seen
from synergy_extender.decisions.summary import GPUShares, summary_of
from synergy_extender.decisions.unstarted import NOT_STARTED_SECONDS
from synergy_extender.decisions.writing_order import in_turns, writing_order
from synergy_extender.rounds import Moment
from synergy_extender.snapshot import scheduling_record as marks
from synergy_extender.snapshot.entitlements import Entitlements
from synergy_extender.snapshot.quotas import FreeQuotas

NOT_ADMITTED_SECONDS = 120.0
"""A granted run gives its place back when its room has not come free this long after it was granted, or after the pods
there that were deleted had to be gone by the end of their grace periods."""

_DIGITS = 3
"""Of an estimate that is told: with more, each job that comes or goes would change those of all others."""
_MOST_CHECKPOINT_S = float(SchedulingPolicySpec().preemption.max_checkpoint_seconds)
_MOST_ESTIMATES = 64
"""Of one job, that are told."""


class Stance(NamedTuple):
    """What a plan assumed of a job. A decision holds only while the job still stands so."""

    standing: RunState
    run: int
    suspended: bool


def stance(job: JobView, now: float) -> Stance:
    """How the job stands now."""
    allocation = open_run(job)
    return Stance(run_state(job, now), allocation.run if allocation is not None else 0, job.spec.suspend)


@dataclass(frozen=True)
class PlanResult:
    """A plan with what it was made from. `refused` are the jobs that could not be planned, with the reason."""

    plan: Plan
    mode: Mode
    stances: Mapping[Key, Stance]
    refused: Mapping[Key, Finding] = field(default_factory=dict)
    entitled: Entitlements = field(default_factory=Entitlements)
    left_out: Container[Key] = frozenset()
    """Jobs that had no part in the plan because nothing can be written of them: nothing is decided of them."""


@dataclass(frozen=True)
class Decision:
    """Changes in the order of writing, and the places kept for jobs that move there once they have left."""

    changes: list[StatusChange]
    reserved: Mapping[Key, core.Allocation]


def decide(
    state: ClusterState,
    moment: Moment,
    result: PlanResult | None,
    assumed: AssumedBindings,
    *,
    reserved: Mapping[Key, core.Allocation] | None = None,
    granted_since: Mapping[Key, float] | None = None,
    unstarted_since: Mapping[Key, float] | None = None,
    most_checkpoint_s: float = _MOST_CHECKPOINT_S,
    counted: Container[str] = (),
) -> Decision:
    """What must be written now. Without a plan: what the run protocol and the ledger require by themselves.

    `granted_since` says since when each granted and not admitted job has been seen so, `unstarted_since` since when
    each admitted run has been without a bound pod, `most_checkpoint_s` how long a run that leaves may take for its
    checkpoint at the most, `counted` (UIDs) which finished jobs are in the history and are to
    know it.
    """
    ledger = Ledger(state.allocatable, state.pods, assumed)
    quotas = FreeQuotas(state)
    drafts = {key: Draft.of(job) for key, job in state.jobs.items()}
    usable = {capacity.name for capacity in state.capacities if capacity.schedulable}
    kept = dict(reserved or {})
    order = ByOrder(drafts.values(), state, assumed, kept)
    unstarted = unstarted_since or {}
    for draft in drafts.values():
        room_since = _waits_since(draft, moment, granted_since or {}, state, most_checkpoint_s)
        waits = _Waits(moment.now - room_since, moment.now - unstarted.get(draft.job.key, moment.now))
        _settle(draft, moment, usable, waits, order)
    if result is not None:
        if result.mode == "round":
            kept = {}
        _follow(drafts, moment, result, state, kept, quotas=quotas)
    for draft in drafts.values():
        if draft.granted is not None and open_run(draft.job) is not None:
            renewed = places.renew(draft.granted, moment.rounds, moment.round_index)
            if renewed is not draft.granted:
                draft.put(ChangeKind.STAY, renewed)
        elif draft.allocation is not None and open_run(draft.job) is not None:
            sooner = places.brought_back(draft.allocation, moment.now, moment.rounds)
            if sooner is not draft.allocation:
                draft.put(ChangeKind.LEAVE, sooner)
    for draft in drafts.values():
        _keep_to_what_is_possible(draft)
    tell_seen(drafts.values(), state)
    admit(drafts.values(), ledger, state.pods, assumed, ByOrder(drafts.values(), state, assumed, kept), quotas=quotas)
    _tell_queue(drafts, moment.now, result)
    _tell_late(drafts, moment.now, result)
    _tell_estimates(drafts, moment.now, result)
    _tell_restrictions(drafts, result)
    for draft in drafts.values():
        if draft.job.uid in counted and is_over(draft.job):
            draft.marks = marks.counted(draft.job)
    found = [change for change in (draft.change() for draft in drafts.values()) if change is not None]
    shares = GPUShares(state)
    changes = [replace(change, summary=summary_of(change, shares)) for change in found]
    wanted = (RunState.LEAVING, RunState.WAITING, RunState.HOLDING)
    return Decision(
        in_turns(sorted(changes, key=writing_order)),
        {k: place for k, place in kept.items() if k in drafts and _keeps(drafts[k], moment.now, wanted)},
    )


def _waits_since(
    draft: Draft, moment: Moment, granted_since: Mapping[Key, float], state: ClusterState, most_checkpoint_s: float
) -> float:
    """Since when the room of a granted run could have been free: it does not count a long grace period, nor a
    checkpoint that takes long. Nobody waits longer for a grace period than for a checkpoint."""
    since = granted_since.get(draft.job.key, moment.now)
    nodes = draft.allocation.workers if draft.allocation is not None else []
    there = [pod for share in nodes for pod in state.pods.on_node(share.node)]
    soon = moment.now + most_checkpoint_s  # the owner of a pod may choose a grace period of years
    going = [pod.leaves_by for pod in there if pod.leaves_by is not None and pod.leaves_by <= soon]
    told = [by for pod in there if (by := _told_to_leave_by(pod, state, most_checkpoint_s)) is not None]
    return max([since, *going, *told])


def _told_to_leave_by(pod: PodView, state: ClusterState, most_checkpoint_s: float) -> float | None:
    """When the operator ends the pod of a revoked run at the latest (Unix time); None for all other pods."""
    job = state.jobs.get(pod.member.job) if pod.member is not None else None
    allocation = open_run(job) if job is not None else None
    if job is None or allocation is None or allocation.state != "Revoked" or allocation.lease_until is None:
        return None
    return parse_time(allocation.lease_until) + leave_seconds(job.spec, job.status, most_checkpoint_s)


class _Waits(NamedTuple):
    """For how many seconds a run has waited for its room, and for its first bound pod."""

    for_room_s: float
    for_pods_s: float


def _settle(draft: Draft, moment: Moment, usable: set[str], waits: _Waits, order: ByOrder) -> None:
    """Changes that follow from the run protocol alone: ended runs are released, and runs that must not start."""
    allocation, job = draft.allocation, draft.job
    if allocation is None:
        return
    if open_run(job) is None:
        if allocation.state != "Released":
            draft.put(ChangeKind.LEAVE, places.release(allocation))
        return
    if allocation.state != "Granted":
        return
    reason = ""
    if job.deleting:  # as long as a finalizer of anybody's keeps it
        reason = Revocation.DELETED
    elif job.spec.suspend:
        reason = Revocation.SUSPENDED
    elif not allocation.admitted and not usable.issuperset(places.nodes_of(allocation.workers)):
        reason = Revocation.NODE_UNUSABLE
    elif not allocation.admitted and order.partners(job.key, allocation) is Coming.NEVER:
        reason = Revocation.PARTNERS_GONE
    elif not allocation.admitted and waits.for_room_s > NOT_ADMITTED_SECONDS:
        reason = Revocation.ROOM_NOT_FREED
    elif allocation.admitted and waits.for_pods_s > NOT_STARTED_SECONDS:
        finding = say(Reason.PODS_NOT_STARTED, run=allocation.run, seconds=round(NOT_STARTED_SECONDS))
        reason = f"{PODS_NOT_STARTED}{finding.message}"
    if reason:
        draft.put(ChangeKind.LEAVE, places.revoke(allocation, moment.now, reason))


def _follow(
    drafts: Mapping[Key, Draft],
    moment: Moment,
    result: PlanResult,
    state: ClusterState,
    kept: dict[Key, core.Allocation],
    *,
    quotas: FreeQuotas,
) -> None:
    """Do what the plan says for each job that is still as the plan assumed.

    A job keeps its place reserved while leaving runs still hold its namespace's quota: its pods would be refused.
    """
    chosen = {place.job: place for place in result.plan.allocations}
    capacities = {capacity.name: capacity for capacity in state.capacities}
    usable = {capacity.name for capacity in state.capacities if capacity.schedulable}
    moving = movers(chosen, state) if result.mode == "round" else frozenset()
    promoted = frozenset(result.plan.promoted)
    isolated = {entry.job: entry for entry in result.plan.isolated} if result.mode == "round" else {}
    for key, draft in drafts.items():
        if key in result.left_out or result.stances.get(key) != stance(draft.job, moment.now):
            continue
        place = chosen.get(str(key))
        if str(key) in promoted:
            draft.marks = marks.promoted(draft.job, moment.now)
        if str(key) in isolated:
            draft.marks = marks.isolated(draft.marks, isolated[str(key)])
        match run_state(draft.job, moment.now):
            case RunState.HOLDING:
                stays = place is not None and key not in moving
                parted = parting(draft.job, place, state.jobs)
                _hold(draft, moment, place, capacities, kept, mode=result.mode, stays=stays, parted=parted)
            case RunState.WAITING:
                if place is not None:
                    kept.pop(key, None)
                    if places.is_whole(place) and usable.issuperset(share.node for share in place.workers):
                        profile = _purpose(draft) == "Profile"
                        if quotas.take(draft.job, shares_of(place, capacities), profile=profile):
                            _enter(draft, moment, place, capacities)
                        else:
                            kept[key] = place
            case _:
                pass


def _hold(
    draft: Draft,
    moment: Moment,
    place: core.Allocation | None,
    capacities: Capacities,
    kept: dict[Key, core.Allocation],
    *,
    mode: Mode,
    stays: bool,
    parted: str,
) -> None:
    """A running job stays, perhaps with other CPU and memory, or leaves at the boundary. `parted` says why it no longer
    shares its GPU, if sharing was slower than expected.

    In fill mode no job leaves, but a running job may be cut down to what is as fast as its share, so that a newcomer
    finds CPU and memory beside free GPUs.
    """
    allocation = draft.granted
    if allocation is None:
        return
    if place is not None and stays and places.same_place(allocation, place, capacities):
        if allocation.purpose == "Train" and places.is_whole(place):
            tuned = places.retune(allocation, place, capacities)
            if tuned != allocation:
                draft.put(ChangeKind.STAY, tuned)
        return
    if mode == "fill":
        return
    until = moment.now
    if allocation.admitted:  # a plan that comes late leaves time to hear of it
        until = max(moment.rounds.start(moment.round_index), moment.now + moment.rounds.lead_s / 2)
    reason = Revocation.YIELDS if place is None else Revocation.MOVES
    draft.put(ChangeKind.LEAVE, places.revoke(allocation, until, f"{parted}; {reason}" if parted else reason))
    if place is not None:
        kept[draft.job.key] = place


def _keep_to_what_is_possible(draft: Draft) -> None:
    """A run whose pods cannot be resized is recorded with the size that its pods have."""
    limits = size_limits(draft.job)
    if limits is None or draft.granted is None or draft.granted.run != limits.run:
        return
    kept = places.within(draft.granted, limits)
    if kept is not draft.granted:
        draft.put(ChangeKind.STAY, kept)


def _purpose(draft: Draft) -> Purpose:
    return "Profile" if draft.job.status.phase == "Profiling" else "Train"


def _enter(draft: Draft, moment: Moment, place: core.Allocation, capacities: Capacities) -> None:
    purpose = _purpose(draft)
    run = next_run(draft.job)
    draft.put(
        ChangeKind.ENTER,
        places.grant(run, purpose, place, moment, capacities=capacities, before=draft.job.status.allocation),
    )
    if purpose == "Train" and (draft.marks is None or draft.marks.started_at is None):
        draft.marks = marks.started(draft.marks, draft.job, moment.now)


def _tell_queue(drafts: Mapping[Key, Draft], now: float, result: PlanResult | None) -> None:
    """Tell waiting jobs why they wait. Without a new plan the old reasons stay."""
    stands = {key: run_state(draft.job, now) for key, draft in drafts.items()}
    told = None
    if result is not None:
        backing_off = [draft.job for key, draft in drafts.items() if stands[key] is RunState.BACKING_OFF]
        jobs = {key: draft.job for key, draft in drafts.items()}
        told = queue_of(result.plan, jobs, backing_off, result.refused)
    for key, draft in drafts.items():
        waits = stands[key] in (RunState.WAITING, RunState.BACKING_OFF) and draft.granted is None
        if not waits:
            draft.queue = None
        elif told is not None:
            draft.queue = told.get(key, draft.queue)


def _tell_late(drafts: Mapping[Key, Draft], now: float, result: PlanResult | None) -> None:
    """Tell jobs that will miss their deadlines. Jobs that had no part in the plan hear nothing new."""
    late = {item.job: item for item in result.plan.late} if result is not None else {}
    for key, draft in drafts.items():
        if draft.job.spec.slo is None or draft.job.status.phase in FINISHED:
            draft.late = None
        elif result is not None and run_state(draft.job, now) in (RunState.WAITING, RunState.HOLDING):
            found = late.get(str(key))
            draft.late = Late(reason=found.reason, message=found.message) if found is not None else None


def _tell_estimates(drafts: Mapping[Key, Draft], now: float, result: PlanResult | None) -> None:
    """Record which throughputs of a job are estimated: none for a suspended job or one that backs off. Other jobs that
    had no part in the plan keep theirs."""
    found: dict[str, list[SpeedEstimate]] = {}
    for one in result.plan.estimates if result is not None else ():
        speed = float(f"{one.steps_per_s:.{_DIGITS}g}")
        found.setdefault(one.job, []).append(SpeedEstimate(gpu_type=one.gpu_type, steps_per_second=speed))
    for key, draft in drafts.items():
        job, stands = draft.job, run_state(draft.job, now)
        if job.status.phase in FINISHED or job.spec.suspend or stands is RunState.BACKING_OFF:
            draft.estimates = None
        elif result is not None and stands in (RunState.WAITING, RunState.HOLDING):
            draft.estimates = found.get(str(key), [])[:_MOST_ESTIMATES] or None


def _tell_restrictions(drafts: Mapping[Key, Draft], result: PlanResult | None) -> None:
    """Tell each job what of its spec the plan did not follow, for its tenant's sake."""
    for key, draft in drafts.items():
        if draft.job.status.phase in FINISHED:
            draft.restriction = None
        elif result is not None and key in result.entitled.by_job:
            draft.restriction = result.entitled.by_job[key].restriction


def _keeps(draft: Draft, now: float, wanted: tuple[RunState, ...]) -> bool:
    return draft.granted is None and run_state(draft.job, now) in wanted
