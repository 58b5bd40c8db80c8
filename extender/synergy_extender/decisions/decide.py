"""From a plan to changes of status. Pure: cluster, plan and clock in, changes out."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_core.explain.preemptions import Preemption
from synergy_core.model import snapshot as core
from synergy_extender.cluster.ledger import AssumedBindings, Ledger
from synergy_extender.cluster.revocation import Revocation
from synergy_extender.cluster.run_state import RunState, next_run, open_run, run_state, size_limits
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import Key
from synergy_extender.colocation.devices import Capacities, shares_of
from synergy_extender.colocation.measured import parting
from synergy_extender.colocation.partners import movers
from synergy_extender.decisions import allocations as places
from synergy_extender.decisions.admission import admit, asks_for_room
from synergy_extender.decisions.allocations import Purpose
from synergy_extender.decisions.changes import ChangeKind, Draft, StatusChange
from synergy_extender.decisions.concerned import KnownPlaces, concerned
from synergy_extender.decisions.estimates import Estimate, tell_starts
from synergy_extender.decisions.history import is_over
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.decisions.preempting import at_once, leaves_at, recorded
from synergy_extender.decisions.protocol import give_back, settle, still_waits_for_room, waits_since
from synergy_extender.decisions.shared_admission import ByOrder, tell_seen
from synergy_extender.decisions.shown import tell_estimates, tell_late, tell_queue, tell_restrictions
from synergy_extender.decisions.summary import GPUShares, summary_of
from synergy_extender.decisions.writing_order import ordered
from synergy_extender.rounds import Moment
from synergy_extender.snapshot import scheduling_record as marks
from synergy_extender.snapshot.quotas import FreeQuotas
from synergy_extender.tenants.room import TenantRoom

_MOST_CHECKPOINT_S = float(SchedulingPolicySpec().preemption.max_checkpoint_seconds)


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
    freed_at: float = -math.inf,
    unstarted_since: Mapping[Key, float] | None = None,
    most_checkpoint_s: float = _MOST_CHECKPOINT_S,
    counted: Collection[str] = (),
    estimates: Mapping[Key, Estimate] | None = None,
    known: KnownPlaces | None = None,
) -> Decision:
    """What must be written now. Without a plan: what the run protocol and the ledger require by themselves.

    `granted_since` says since when each job has been seen granted and not admitted, `freed_at` when one of them was
    last admitted, `unstarted_since` since when each admitted run has had no bound pod. `most_checkpoint_s` is the
    longest time that a leaving run may take for its checkpoint. `counted` has the UIDs of finished jobs that are in the
    history and whose status does not say so yet. `estimates` are those of the newest forecast, None before the first
    one. `known` is what earlier decisions of the same caller leave for this one: it saves time and changes nothing.
    """
    ledger = Ledger(state.allocatable, state.pods, assumed)
    quotas = FreeQuotas(state)
    known = known or KnownPlaces()
    known.begin(state.capacities)
    unstarted = unstarted_since or {}
    drafts = {job.key: Draft.of(job) for job in concerned(state, result, known, unstarted=unstarted, counted=counted)}
    usable = {capacity.name for capacity in state.capacities if capacity.schedulable or capacity.one_at_a_time}
    kept = dict(reserved or {})
    order = ByOrder(drafts.values(), state, assumed, kept)
    before = _tenant_room(state, drafts)
    for draft in drafts.values():
        waited_s = moment.now - unstarted.get(draft.job.key, moment.now)
        settle(draft, moment, usable, order, for_pods_s=waited_s)
    if result is not None:
        if result.mode == "round":
            kept = {}
        _follow(drafts, moment, result, state, kept, quotas=quotas, known=known)
    for draft in drafts.values():
        _bring_back(draft, moment)
        _keep_to_what_is_possible(draft)
    tell_seen(drafts.values(), state)
    if any(asks_for_room(draft) for draft in drafts.values()):
        order = ByOrder(drafts.values(), state, assumed, kept)
        tenants = _tenant_room(state, drafts)
        others = (job for key, job in state.jobs.items() if key not in drafts)
        admit(drafts.values(), ledger, state.pods, assumed, order, quotas=quotas, tenants=tenants, others=others)
    for draft in filter(still_waits_for_room, drafts.values()):
        since = waits_since(
            draft, moment, granted_since or {}, state, most_checkpoint_s, tenants=before, freed_at=freed_at
        )
        give_back(draft, moment, since, order)
    _tell(drafts, moment, result, counted=counted, estimates=estimates)
    found = [change for change in (draft.change() for draft in drafts.values()) if change is not None]
    shares = GPUShares(state)
    changes = [replace(change, summary=summary_of(change, shares)) for change in found]
    wanted = (RunState.LEAVING, RunState.WAITING, RunState.HOLDING)
    return Decision(
        ordered(changes),
        {k: place for k, place in kept.items() if k in drafts and _keeps(drafts[k], moment.now, wanted)},
    )


def _tell(
    drafts: Mapping[Key, Draft],
    moment: Moment,
    result: PlanResult | None,
    *,
    counted: Collection[str],
    estimates: Mapping[Key, Estimate] | None,
) -> None:
    """What people see of jobs, and that a finished job is in the history."""
    stands = {key: run_state(draft.job, moment.now) for key, draft in drafts.items()}
    tell_queue(drafts, stands, result)
    tell_late(drafts, stands, result)
    tell_estimates(drafts, stands, result)
    tell_restrictions(drafts, result)
    for draft in drafts.values():
        if draft.job.uid in counted and is_over(draft.job):
            draft.marks = marks.counted(draft.job)
    tell_starts(drafts, moment.now, estimates)


def _tenant_room(state: ClusterState, drafts: Mapping[Key, Draft]) -> TenantRoom:
    """The room of tenants, with the allocations that jobs shall have. Jobs without a draft keep theirs."""
    runs = (
        (job, drafts[key].allocation if key in drafts else job.status.allocation) for key, job in state.jobs.items()
    )
    return TenantRoom(state, runs)


def _follow(
    drafts: Mapping[Key, Draft],
    moment: Moment,
    result: PlanResult,
    state: ClusterState,
    kept: dict[Key, core.Allocation],
    *,
    quotas: FreeQuotas,
    known: KnownPlaces,
) -> None:
    """Do what the plan says for each job that is still as the plan assumed.

    A job keeps its place reserved while leaving runs still hold its namespace's quota: its pods would be refused.
    """
    chosen = {place.job: place for place in result.plan.allocations}
    capacities = {capacity.name: capacity for capacity in state.capacities}
    usable = {capacity.name for capacity in state.capacities if capacity.schedulable}
    on_trial = {capacity.name for capacity in state.capacities if capacity.one_at_a_time}
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
                found = result.preemptions.get(str(key))
                keeps = result.mode == "fill" and not at_once(found)
                if place is not None and stays and _has_already(draft, place, capacities):
                    known.note(draft.job, place)
                    continue
                _hold(draft, moment, place, capacities, kept, keeps=keeps, stays=stays, parted=parted, found=found)
            case RunState.WAITING:
                if place is not None:
                    kept.pop(key, None)
                    if places.is_whole(place) and usable.issuperset(share.node for share in place.workers):
                        profile = _purpose(draft) == "Profile"
                        if quotas.take(draft.job, shares_of(place, capacities), profile=profile):
                            _enter(draft, moment, place, capacities)
                            usable -= on_trial.intersection(share.node for share in place.workers)
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
    keeps: bool,
    stays: bool,
    parted: str,
    found: Preemption | None,
) -> None:
    """A running job stays, perhaps with other CPU and memory, or leaves at the boundary. `parted` says why it no longer
    shares its GPU, if sharing was slower than expected; `found` why the plan ends its run, if it does.

    In fill mode a job `keeps` its place but for one of an urgent class. A running job may be cut down to what is as
    fast as its share, to leave CPU and memory beside free GPUs for a newcomer.
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
    if keeps:
        return
    until = leaves_at(moment, allocation, at_once=at_once(found))
    draft.preemptions = recorded(draft.preemptions, allocation, found, draft.job.key.namespace, moment.now)
    reason = Revocation.YIELDS if place is None else Revocation.MOVES
    draft.put(ChangeKind.LEAVE, places.revoke(allocation, until, f"{parted}; {reason}" if parted else reason))
    if place is not None:
        kept[draft.job.key] = place


def _has_already(draft: Draft, place: core.Allocation, capacities: Capacities) -> bool:
    """Whether the run has just what the plan gives it."""
    allocation = draft.granted
    if allocation is None or not places.same_place(allocation, place, capacities):
        return False
    return places.says(allocation, place, capacities)


def _bring_back(draft: Draft, moment: Moment) -> None:
    """A run that was revoked by a clock that was ahead leaves within a lead from now."""
    if draft.granted is None and draft.allocation is not None and open_run(draft.job) is not None:
        sooner = places.brought_back(draft.allocation, moment.now, moment.rounds)
        if sooner is not draft.allocation:
            draft.put(ChangeKind.LEAVE, sooner)


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


def _keeps(draft: Draft, now: float, wanted: tuple[RunState, ...]) -> bool:
    return draft.granted is None and run_state(draft.job, now) in wanted
