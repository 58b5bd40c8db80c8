"""The events of a status change: few, each a step in the job's life or something to act on.

They follow from the difference between two statuses, so the writer of the second one posts each event once. The list of
reasons determines which reasons lead to an event.
"""

from collections.abc import Iterator

from synergy_api.quantity import format_cpu
from synergy_api.reasons import ENTRIES, Finding, Reason, say
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_operator.actions import PostEvent
from synergy_operator.conditions import ORDER, find
from synergy_operator.run.step import reason_of


def events(old: TrainingJobStatus, new: TrainingJobStatus) -> tuple[PostEvent, ...]:
    """The events of the change from `old` to `new`. A reason that ends a run and is also in a condition is posted
    once."""
    once: dict[Reason, Finding] = {}
    for finding in (*_of_runs(old, new), *_of_conditions(old, new)):
        once.setdefault(finding.reason, finding)
    found = (*_of_points(old, new), *once.values())
    return tuple(PostEvent(kind, f.reason, f.message) for f in found if (kind := ENTRIES[f.reason].event))


def _of_points(old: TrainingJobStatus, new: TrainingJobStatus) -> Iterator[Finding]:
    known = {point.job for point in old.profile.points} if old.profile else set()
    for point in new.profile.points if new.profile else []:
        if point.job not in known:
            part = "" if point.hit_rate is None else f", {point.hit_rate:.0%} of the data in memory"
            facts = {"cpu": format_cpu(point.cpu_millis), "gpu_type": point.gpu_type + part}
            yield say(Reason.POINT_MEASURED, speed=f"{point.steps_per_second:.3g}", **facts)


def _of_runs(old: TrainingJobStatus, new: TrainingJobStatus) -> Iterator[Finding]:
    before = old.service.last if old.service else None
    last = new.service.last if new.service else None
    if last is not None and (before is None or (before.run, before.reason) != (last.run, last.reason)):
        yield reason_of(last)


def _of_conditions(old: TrainingJobStatus, new: TrainingJobStatus) -> Iterator[Finding]:
    last = old.service.last if old.service else None
    posted = reason_of(last).reason if last is not None else None  # by the run's end
    for kind in ORDER:
        before, after = find(old.conditions, kind), find(new.conditions, kind)
        if after is None or (before is not None and before.reason == after.reason):
            continue
        reason = Reason(after.reason)
        initial = reason is Reason.AS_PLANNED and before is None
        if reason is not posted and not initial:
            yield Finding(reason, after.message)
