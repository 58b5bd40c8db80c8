"""The reconcile of one managed object: its TrainingJob is made, and what becomes of that is told on the object."""

from dataclasses import dataclass
from typing import Final

from synergy_api.reasons import EventKind, Finding, Reason, say
from synergy_operator.actions import Action, AdoptOwner, MarkOwner, SetSuspended, ShowOnOwner
from synergy_operator.conditions import RUNNING, find
from synergy_operator.job.managed.adopt import training_job
from synergy_operator.views.job import JobView
from synergy_operator.views.owners.view import OwnerView

_BLOCKED: Final = "NotManaged"


@dataclass(frozen=True, slots=True)
class _Shown:
    text: str
    finding: Finding


def follow_owner(owner: OwnerView, job: JobView | None) -> tuple[Action, ...]:
    """The next actions. `job` is the TrainingJob of its name, whoever made it."""
    if owner.deleting:
        return ()
    if job is not None and job.controller != owner.uid:
        return _show(owner, _not_managed(owner, f"TrainingJob {job.name} exists and is not its own"))
    if job is not None:
        return _show(owner, _state(job))
    if owner.finished:
        return ()
    if owner.problem:
        return _show(owner, _not_managed(owner, owner.problem))
    return _adopt(owner)


def _adopt(owner: OwnerView) -> tuple[Action, ...]:
    """One step at a time: suspend it, wait until its pods are gone, mark its templates, make the TrainingJob.

    Kubernetes lets a template change only while the Job is suspended and has no pods.
    """
    if not owner.suspended:
        return (SetSuspended(owner.kind, owner.name, owner.uid, True),)
    if owner.active:
        return ()
    if owner.marked_spec is not None:
        return (MarkOwner(owner.kind, owner.name, owner.uid, owner.resource_version, owner.marked_spec),)
    return (AdoptOwner(owner.kind, owner.name, owner.uid, training_job(owner)),)


def _not_managed(owner: OwnerView, problem: str) -> _Shown:
    return _Shown(_BLOCKED, say(Reason.NOT_MANAGED, object=owner.full_name, problem=problem))


def _state(job: JobView) -> _Shown | None:
    """The phase, and why no worker runs."""
    running = find(job.status.conditions, RUNNING)
    if job.status.phase is None or running is None:
        return None
    phase = job.status.phase
    text = phase if running.status == "True" or phase in ("Succeeded", "Failed") else f"{phase}: {running.reason}"
    return _Shown(text, say(Reason.MANAGED_STATE, job=job.name, phase=phase, why=running.message))


def _show(owner: OwnerView, shown: _Shown | None) -> tuple[Action, ...]:
    if shown is None or shown.text == owner.shown:
        return ()
    kind: EventKind = "Warning" if shown.finding.reason is Reason.NOT_MANAGED else "Normal"
    return (
        ShowOnOwner(owner.kind, owner.name, owner.uid, shown.text, kind, shown.finding.reason, shown.finding.message),
    )
