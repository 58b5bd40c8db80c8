"""The reconcile of one managed object: its TrainingJob is made, and what becomes of that is told on the object."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from synergy_api.names import RESOURCE_GPU
from synergy_api.reasons import EventKind, Finding, Reason, say
from synergy_operator.actions import Action, AdoptOwner, MarkOwner, SetSuspended, ShowOnOwner
from synergy_operator.conditions import RUNNING, find
from synergy_operator.job.managed.adopt import training_job
from synergy_operator.views.job import JobView
from synergy_operator.views.owners.view import OwnerView

NOT_MANAGED: Final = "NotManaged"
"""What the annotation of an object says that cannot be managed."""


@dataclass(frozen=True, slots=True)
class _Shown:
    text: str
    finding: Finding


def follow_owner(owner: OwnerView, job: JobView | None, gpu_types: Sequence[str] | None = ()) -> tuple[Action, ...]:
    """The next actions. `job` is the TrainingJob of its name, whoever made it. `gpu_types` are those on which its pods
    could run as they are: empty for all, None for none."""
    if owner.deleting:
        return ()
    if job is not None and job.controller != owner.uid:
        return _show(owner, _not_managed(owner, f"TrainingJob {job.name} exists and is not its own"))
    if job is not None:
        return _show(owner, _state(job))
    if owner.finished:
        return ()
    nowhere = f"no node offers whole GPUs by the name {RESOURCE_GPU}" if gpu_types is None else ""
    if owner.problem or nowhere:
        return _show(owner, _not_managed(owner, owner.problem or nowhere))
    return _adopt(owner, gpu_types or ())


def _adopt(owner: OwnerView, gpu_types: Sequence[str]) -> tuple[Action, ...]:
    """One step at a time: suspend it, wait until its pods are gone, mark its templates, make the TrainingJob.

    Kubernetes lets a template change only while the Job is suspended and has no pods. A controller that has not yet
    noted the suspension would not note it at all if the object is resumed at once: its unmarked pods would run on.
    """
    if not owner.suspended:
        return (SetSuspended(owner.kind, owner.name, owner.uid, True),)
    if owner.active:
        return ()
    if owner.marked_spec is not None:
        return (MarkOwner(owner.kind, owner.name, owner.uid, owner.resource_version, owner.marked_spec),)
    return (AdoptOwner(owner.kind, owner.name, owner.uid, training_job(owner, gpu_types)),)


def _not_managed(owner: OwnerView, problem: str) -> _Shown:
    return _Shown(NOT_MANAGED, say(Reason.NOT_MANAGED, object=owner.full_name, problem=problem))


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
