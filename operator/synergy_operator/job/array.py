"""The reconcile of an array: a TrainingJob that makes other TrainingJobs, one for each index.

The array itself has no pods and is never planned. A member is a TrainingJob like any other. It is made once: the status
of the array remembers which indexes are finished, so that a member may be deleted afterwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from synergy_api.parts.relations.array import Array, ArrayStatus, indexes_text, read_indexes
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.training_job import Phase, TrainingJobSpec, TrainingJobStatus
from synergy_api.timestamps import format_time
from synergy_operator.actions import Action, Actions, ChangeMember, CreateMember
from synergy_operator.conditions import FINISHED, RUNNING, VALID, ConditionUpdate, no, write, yes
from synergy_operator.job.dependencies import Dependencies, dependencies
from synergy_operator.job.status_write import operator_part, status_actions
from synergy_operator.pods.members import following, member_manifest
from synergy_operator.views.job import Member
from synergy_operator.views.observed import Observed

AT_ONCE: Final = 16
"""Members that one reconcile makes."""
REFUSED_SECONDS: Final = 30.0
"""How long to wait after the API server has refused a member."""
_HOLDS: Final[tuple[Phase, ...]] = ("Starting", "Running", "Yielding")


@dataclass(frozen=True, slots=True)
class _Members:
    """The members that exist, by index, and the indexes that are finished. `wrong` is what is wrong with the array's
    spec, `before` what it waits for."""

    there: Mapping[int, Member]
    succeeded: set[int]
    failed: set[int]
    wrong: Finding | None
    before: Dependencies

    @property
    def done(self) -> set[int]:
        return self.succeeded | self.failed

    @property
    def open(self) -> dict[int, Member]:
        return {index: one for index, one in self.there.items() if index not in self.done}


def reconcile_array(
    observed: Observed, spec: TrainingJobSpec, array: Array, problem: Finding | None, now: float
) -> Actions:
    """The next actions for an array that is not finished.

    `problem` is what is wrong with its spec; `now` is Unix time.
    """
    job = observed.job
    before = dependencies(job, observed.named_phases, observed.cycle)
    members = _members(observed, array, problem, before)
    behind = [
        ChangeMember(one.name, one.uid, following(spec))
        for one in members.open.values()
        if not one.deleting and one.follows != following(spec)
    ]
    refused_for = _refused_for(observed, now)
    held = refused_for is not None and observed.refusals.member is not None and bool(observed.refusals.member.changed)
    changes: tuple[Action, ...] = () if held else tuple(behind)
    wanted = problem is None and not spec.suspend and before.waits is None and before.failed is None
    new = _next(members, array) if wanted and refused_for is None else []
    makes = tuple(CreateMember(member_manifest(job, spec, index)) for index in new)
    status = _status(observed, spec, array, members, now)
    return Actions((*status_actions(job.status, status), *changes, *makes), refused_for if wanted or behind else None)


def _members(observed: Observed, array: Array, wrong: Finding | None, before: Dependencies) -> _Members:
    known = observed.job.status.array or ArrayStatus()
    there = {one.index: one for one in observed.members if one.index < array.count}
    phases = {index: one.phase for index, one in there.items()}
    succeeded = read_indexes(known.succeeded_indexes) | {i for i, phase in phases.items() if phase == "Succeeded"}
    failed = read_indexes(known.failed_indexes) | {i for i, phase in phases.items() if phase == "Failed"}
    return _Members(there, succeeded, failed - succeeded, wrong, before)


def _next(members: _Members, array: Array) -> list[int]:
    """The indexes of the members to make now, the lowest first."""
    room = (array.max_parallel or array.count) - len(members.open)
    left = [index for index in range(array.count) if index not in members.done and index not in members.there]
    return left[: max(0, min(room, AT_ONCE))]


def _refused_for(observed: Observed, now: float) -> float | None:
    """How many seconds no member is tried, because the API server refused one; None if that is over."""
    refused = observed.refusals.member
    left = 0.0 if refused is None else refused.at + REFUSED_SECONDS - now
    return left if left > 0 else None


def _status(
    observed: Observed, spec: TrainingJobSpec, array: Array, members: _Members, now: float
) -> TrainingJobStatus:
    job = observed.job
    running = sum(one.phase in _HOLDS for one in members.open.values())
    end = _end(array, members)
    updates: dict[str, ConditionUpdate | None] = {
        VALID: no(members.wrong) if members.wrong is not None else yes(say(Reason.ACCEPTED)),
        RUNNING: _running(observed, spec, array, members, running=running),
        FINISHED: yes(end) if end is not None else no(say(Reason.NOT_FINISHED)),
    }
    starts = [one.start_time for one in members.there.values() if one.start_time is not None]
    return operator_part(job.status).model_copy(
        update={
            "observed_generation": job.generation,
            "phase": _phase(spec, members, end),
            "conditions": write(job.status.conditions, updates, job.generation, now),
            "array": ArrayStatus(
                running=running,
                waiting=len(members.open) - running,
                succeeded=len(members.succeeded),
                failed=len(members.failed),
                succeeded_indexes=indexes_text(members.succeeded),
                failed_indexes=indexes_text(members.failed),
                progress=f"{len(members.done)}/{array.count}",
            ),
            "met_dependencies": list(members.before.met),
            "start_time": job.status.start_time or min(starts, default=None),
            "completion_time": format_time(now) if end is not None else None,
        }
    )


def _end(array: Array, members: _Members) -> Finding | None:
    if members.before.failed is not None:
        return members.before.failed
    if len(members.done) < array.count:
        return None
    if members.failed:
        facts = {"failed": len(members.failed), "count": array.count, "indexes": indexes_text(members.failed)}
        return say(Reason.MEMBERS_FAILED, **facts)
    return say(Reason.ALL_MEMBERS_SUCCEEDED, count=array.count)


def _phase(spec: TrainingJobSpec, members: _Members, end: Finding | None) -> Phase:
    if end is not None:
        return "Succeeded" if end.reason is Reason.ALL_MEMBERS_SUCCEEDED else "Failed"
    if spec.suspend:
        return "Suspended"
    waits = members.wrong is not None or members.before.waits is not None
    return "Pending" if waits and not members.open else "Running"


def _running(
    observed: Observed, spec: TrainingJobSpec, array: Array, members: _Members, *, running: int
) -> ConditionUpdate:
    if len(members.done) == array.count or members.before.failed is not None:
        return no(say(Reason.FINISHED))
    if spec.suspend:
        return no(say(Reason.SUSPENDED))
    if members.wrong is not None:
        return no(say(Reason.NOT_VALID))
    if members.before.waits is not None:
        return no(members.before.waits)
    if observed.refusals.member is not None:
        return no(say(Reason.MEMBER_REFUSED, problem=observed.refusals.member.message))
    facts = {"running": running, "waiting": len(members.open) - running, "done": len(members.done)}
    found = say(Reason.MEMBERS_OPEN, count=array.count, **facts)
    return yes(found) if running else no(found)
