"""What has happened to a job, from its status and the events that still exist."""

from collections.abc import Iterable
from dataclasses import dataclass

from synergy_api.timestamps import parse_time
from synergy_view.seen import Object, SeenJob
from synergy_view.words import count, duration


@dataclass(frozen=True, slots=True)
class Happening:
    """One line of the history. `at_s` is in seconds since the epoch."""

    at_s: float
    what: str
    message: str


@dataclass(frozen=True, slots=True)
class History:
    """The happenings, oldest first, and what the status says in sum."""

    happenings: tuple[Happening, ...]
    totals: tuple[str, ...]


def told_by(event: Object) -> tuple[str, Happening] | None:
    """The uid of the object that an event is about, and what it says. None for an event that names no object, or whose
    time cannot be read: users write events too, with any text in them."""
    involved = event.get("regarding") or event.get("involvedObject") or {}
    uid = str(involved.get("uid") or "")
    at = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    try:
        at_s = parse_time(str(at))
    except ValueError:
        return None
    message = str(event.get("note") or event.get("message") or "")
    return (uid, Happening(at_s, str(event.get("reason") or ""), message)) if uid else None


def history(job: SeenJob, told: Iterable[Happening]) -> History:
    """The history of a job. `told` is what its events say: by default those of the last hour, for so long Kubernetes
    keeps them."""
    found = [Happening(job.created_s, "Created", "the TrainingJob was created")]
    if job.status.start_time is not None:
        found.append(Happening(parse_time(job.status.start_time), "FirstStart", "the job ran for the first time"))
    if job.status.completion_time is not None:
        found.append(Happening(parse_time(job.status.completion_time), job.phase, "the job ended"))
    found += [
        Happening(parse_time(one.at), f"Preempted by {one.rule}", f"run {one.run}: {one.text}")
        for one in job.status.preemptions or ()
    ]
    found += told
    return History(tuple(sorted(found, key=lambda one: (one.at_s, one.what))), tuple(_totals(job)))


def _totals(job: SeenJob) -> Iterable[str]:
    service = job.status.service
    if service is None:
        return
    sums = (count(service.run, "run"), count(service.preemptions, "preemption"), count(service.failures, "failure"))
    yield ", ".join(sums)
    for gpu_type, seconds in sorted(service.received_seconds.items()):
        yield f"{duration(seconds)} on {gpu_type} in ended runs"
    if service.last is not None:
        last = f"the newest ended run, {service.last.run}, {service.last.outcome.lower()}"
        yield f"{last}: {service.last.reason}" if service.last.reason else last
