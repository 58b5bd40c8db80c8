"""From a TrainingJob before and after a change to the facts in the change. Pure."""

from synergy_api.length import total_steps
from synergy_api.timestamps import parse_time
from synergy_dashboard.facts import JobFact, Sample
from synergy_dashboard.recorder.runs import ended_by_deletion, resize_facts, run_facts
from synergy_dashboard.store.bundle import Facts, Object, WaitNow
from synergy_view.seen import SeenJob, read

SAMPLE_S = 10.0
"""A job has at most one sample in each interval of this many seconds."""


def facts_of(old: Object | None, new: Object | None, now: float) -> Facts:
    """The facts of a change of a TrainingJob that came (`old` is None), changed, or went (`new` is None).

    Times come from the objects where these have them, else from `now`. Both objects are of one uid. An old one that
    cannot be read counts as none. Raises ValueError naming the field if the new one cannot be read.
    """
    before = None
    if old is not None:
        try:
            before = read(old)
        except (ValueError, ArithmeticError):
            before = None
    return facts_between(before, read(new) if new is not None else None, now)


def facts_between(old: SeenJob | None, new: SeenJob | None, now: float) -> Facts:
    """`facts_of` of objects that are read already."""
    if new is None:
        return Facts() if old is None else _facts_of_end(old, now)
    return Facts(
        jobs=_of_job(old, new),
        runs=run_facts(old, new, now),
        resizes=resize_facts(old, new, now),
        waits=_of_waiting(old, new, now),
        samples=_of_progress(old, new, now),
    )


def _facts_of_end(old: SeenJob, now: float) -> Facts:
    return Facts(
        jobs=(_job(old, deleted_s=now),),
        runs=ended_by_deletion(old, now),
        waits=(WaitNow(uid=old.uid, at_s=now),),
    )


def _of_job(old: SeenJob | None, new: SeenJob) -> tuple[JobFact, ...]:
    told = _job(new)
    return () if old is not None and _job(old) == told else (told,)


def _job(job: SeenJob, deleted_s: float | None = None) -> JobFact:
    status = job.status
    finished = status.completion_time if job.finished else None
    return JobFact(
        uid=job.uid,
        namespace=job.namespace,
        name=job.name,
        tenant=job.tenant,
        created_s=job.created_s,
        gpus=job.spec.gpus,
        gpu_types=tuple(job.spec.gpu_types),
        steps=total_steps(job.spec, status) or 0,
        weight=job.spec.weight,
        fingerprint=status.fingerprint,
        phase=job.phase,
        finished_s=parse_time(finished) if finished is not None else None,
        deleted_s=deleted_s,
        steps_done=status.progress.steps if status.progress is not None else 0,
        preemptions=status.service.preemptions if status.service is not None else 0,
    )


def _of_waiting(old: SeenJob | None, new: SeenJob, now: float) -> tuple[WaitNow, ...]:
    told = _waiting(new, now)
    return () if old is not None and _waiting(old, now) == told else (told,)


def _waiting(job: SeenJob, now: float) -> WaitNow:
    queue = job.status.queue
    if queue is None or job.finished:
        return WaitNow(uid=job.uid, at_s=now)
    return WaitNow(uid=job.uid, at_s=now, reason=queue.reason, message=queue.message, position=queue.position)


def _of_progress(old: SeenJob | None, new: SeenJob, now: float) -> tuple[Sample, ...]:
    """The first report of each stretch."""
    at_s = _reported(new, now)
    if at_s is None or new.status.progress is None:
        return ()
    before = None if old is None or old.status.progress is None else _reported(old, now)
    if before is not None and before // SAMPLE_S == at_s // SAMPLE_S:
        return ()
    progress, allocation = new.status.progress, new.status.allocation
    workers = allocation.workers if allocation is not None and new.gpus_held else []
    sample = Sample(
        uid=new.uid,
        at_s=at_s,
        steps=progress.steps,
        steps_per_s=progress.steps_per_second,
        metrics=tuple(sorted((progress.metrics or {}).items())),
        cpu_millis=sum(one.cpu_millis for one in workers),
        memory_bytes=sum(one.memory_bytes for one in workers),
    )
    return (sample,)


def _reported(job: SeenJob, now: float) -> float | None:
    progress = job.status.progress
    if progress is None or not (progress.updated_at or progress.steps):
        return None
    return parse_time(progress.updated_at) if progress.updated_at else now
