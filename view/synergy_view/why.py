"""Why a job is where it is: the deciding reason, the jobs ahead of it, and the next step."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from synergy_api.parts.relations.clusters import OFFERED
from synergy_api.reasons import ENTRIES, Reason
from synergy_api.timestamps import parse_time
from synergy_view.progress import progress_text
from synergy_view.seen import SeenJob
from synergy_view.top import FailingNodeRow
from synergy_view.words import count, duration

_GOOD = frozenset({"AsPlanned", "Valid", "OnTime"})


@dataclass(frozen=True, slots=True)
class Holder:
    """A job that holds GPUs which another could use."""

    job: str
    gpus: int
    gpu_type: str
    tenant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The answer. `reason` is of the list in docs/troubleshooting.md, or the phase where no reason is given."""

    job: str
    phase: str
    reason: str
    message: str
    explanation: str = ""
    """What the reason means, from the same list; empty where the message explains itself."""
    next_step: str = ""
    """What the user can do now; empty where the message says it."""
    position: int | None = None
    start_s: float | None = None
    """When it will start by the extender's estimate, seconds since the epoch; None while that is not known."""
    start_by_s: float | None = None
    """By then it will have started in nine of ten forecasts."""
    ahead: tuple[str, ...] = ()
    """Waiting jobs before it in the queue that may use the same GPU types, in their order."""
    holders: tuple[Holder, ...] = ()
    """Jobs that hold GPUs of types that it may use, the most GPUs first."""
    cluster: str = ""
    """The worker cluster that has it; empty if it is of this cluster."""
    notes: tuple[str, ...] = ()
    """What else its status complains of: a deadline, a restriction, CPU and memory that are not as planned."""


def why(job: SeenJob, others: Iterable[SeenJob], now: float, failing: Iterable[FailingNodeRow] = ()) -> Why:
    """Explain `job`. `others` are the jobs that the user may see, `failing` the nodes that keep failing jobs. Times are
    seconds since the epoch.

    A job has one reason: what the operator found wrong comes first, because nothing else helps before that is mended.
    Then follow its own suspension, its profile, its place in the queue, its start and its run.
    """
    reason, message, next_step = _dominant(job, now)
    waits = not job.gpus_held and not job.finished and not job.is_array
    entry = job.status.queue
    here = waits and not job.is_elsewhere
    seen = [other for other in others if other.uid != job.uid and not other.is_elsewhere] if here else []
    return Why(
        job=job.full_name,
        phase=job.phase,
        reason=reason,
        message=message,
        explanation=_explained(reason),
        next_step=next_step,
        position=entry.position if waits and entry is not None else None,
        start_s=moment_of(entry.estimated_start if waits and entry is not None else None),
        start_by_s=moment_of(entry.estimated_start_by if waits and entry is not None else None),
        ahead=_ahead(job, seen),
        holders=_holders(job, seen),
        cluster=job.cluster,
        notes=(*_notes(job, reason), *(row.message for row in failing if here and _compatible(job, [row.gpu_type]))),
    )


def _dominant(job: SeenJob, now: float) -> tuple[str, str, str]:
    """Reason, message and next step."""
    status = job.status
    if job.deleting:
        return "Deleted", "the job is being deleted; its pods end first", ""
    if job.finished:
        return *_finished(job), ""
    if status.problem is not None:
        return status.problem.reason, status.problem.message, ""
    if job.is_array and not job.spec.suspend:
        return _running(job, now)
    if job.spec.suspend:
        return "Suspended", "spec.suspend holds the job", f"kubectl synergy resume {job.name} -n {job.namespace}"
    return _running(job, now) if job.gpus_held else _waiting(job, now)


def _not_offered(job: SeenJob) -> tuple[str, str] | None:
    """Why no worker cluster has the job, or why nothing new is known of it; None if one has it and answers."""
    offered = next((one for one in job.status.conditions if one.type == OFFERED), None)
    if offered is None:
        return job.phase, "no controller of worker clusters has looked at it yet"
    return None if offered.status == "True" else (offered.reason, offered.message)


def _finished(job: SeenJob) -> tuple[str, str]:
    conditions = {one.type: one for one in job.status.conditions}
    finished, profiled = conditions.get("Finished"), conditions.get("Profiled")
    if finished is None:
        return job.phase, ""
    if finished.reason == "ProfileFailed" and profiled is not None and profiled.message:
        return finished.reason, f"{finished.message}. {profiled.type}: {profiled.reason}: {profiled.message}"
    return finished.reason, finished.message


def _waiting(job: SeenJob, now: float) -> tuple[str, str, str]:
    not_offered = _not_offered(job) if job.is_elsewhere else None
    if not_offered is not None:
        return *not_offered, ""
    if job.phase == "Profiling":
        return _profiling(job)
    if job.status.queue is not None:
        return job.status.queue.reason, job.status.queue.message, ""
    return _running(job, now)


def _profiling(job: SeenJob) -> tuple[str, str, str]:
    profile, entry = job.status.profile, job.status.queue
    done = count(len(profile.points) if profile is not None else 0, "point")
    if entry is not None:
        return entry.reason, f"its profile runs wait, {done} measured so far: {entry.message}", ""
    return "Profiling", f"its profile is being measured, {done} so far; it is planned once that is done", ""


def _running(job: SeenJob, now: float) -> tuple[str, str, str]:
    condition = next((one for one in job.status.conditions if one.type == "Running"), None)
    if job.phase == "Running" and not job.is_array:
        return "Running", _place(job, now), ""
    if condition is not None and condition.message:
        return condition.reason, condition.message, ""
    words = {
        "Pending": "the operator has not looked at it yet",
        "Queued": "no plan has been made since the job came; the next one is made within seconds",
        "Starting": "its pods start",
        "Yielding": "it writes a checkpoint and leaves its GPUs",
    }
    return job.phase, words.get(job.phase, ""), "kubectl synergy doctor" if job.phase == "Pending" else ""


def _place(job: SeenJob, now: float) -> str:
    allocation, service, progress = job.status.allocation, job.status.service, job.status.progress
    told = f"it runs on {count(job.gpus_held, f'{job.gpu_type} GPU'.lstrip())}"
    if allocation is not None:
        told += f" of {count(len(allocation.workers), 'node')}"
    if job.cluster:
        told += f" in cluster {job.cluster}"
    if service is not None and service.running_since is not None:
        told += f" since {duration(now - parse_time(service.running_since))}"
    if progress is not None and progress.steps_per_second > 0:
        told += f", {progress_text(job, progress)}"
    return told


def moment_of(text: str | None) -> float | None:
    """Seconds since the epoch of an estimate; None where there is none."""
    return None if text is None else parse_time(text)


def _explained(reason: str) -> str:
    return ENTRIES[Reason(reason)].means if reason in Reason._value2member_map_ else ""


def _compatible(job: SeenJob, types: Sequence[str]) -> bool:
    return not job.spec.gpu_types or not types or bool(set(job.spec.gpu_types) & set(types))


def _ahead(job: SeenJob, others: Sequence[SeenJob]) -> tuple[str, ...]:
    entry = job.status.queue
    if entry is None:
        return ()
    before = [
        (other.status.queue.position, other.full_name)
        for other in others
        if other.status.queue is not None
        and other.status.queue.position < entry.position
        and not other.gpus_held
        and _compatible(job, other.spec.gpu_types)
    ]
    return tuple(name for _, name in sorted(before))


def _holders(job: SeenJob, others: Sequence[SeenJob]) -> tuple[Holder, ...]:
    found = [
        Holder(other.full_name, other.gpus_held, other.gpu_type, other.tenant)
        for other in others
        if other.gpus_held and _compatible(job, [other.gpu_type])
    ]
    return tuple(sorted(found, key=lambda one: (-one.gpus, one.job)))


def _notes(job: SeenJob, reason: str) -> Iterable[str]:
    status = job.status
    offered = next((one for one in status.conditions if one.type == OFFERED), None)
    if offered is not None and offered.reason != reason and not job.finished:
        yield f"{offered.reason}: {offered.message}"
    for part in (status.late, status.restriction):
        if part is not None and not job.finished and part.reason != reason:
            yield f"{part.reason}: {part.message}"
    if status.preemptions and not job.gpus_held and not job.finished:
        last = status.preemptions[-1]
        yield f"Preempted by {last.rule}: run {last.run}: {last.text}"
    for condition in status.conditions:
        if condition.type == "ResourcesAsPlanned" and condition.status == "False" and condition.reason not in _GOOD:
            yield f"{condition.reason}: {condition.message}"
    if status.problem is not None and job.gpus_held and status.problem.reason != reason:
        yield f"{status.problem.reason}: {status.problem.message}"
