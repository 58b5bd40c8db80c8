"""Facts about runs from a TrainingJob's status before and after a change. Pure."""

from dataclasses import replace

from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_api.parts.service import RunOutcome, ServiceStatus
from synergy_api.timestamps import parse_time
from synergy_dashboard.facts import ResizeFact, RunFact, Share
from synergy_dashboard.store.merge import UNKNOWN
from synergy_view.seen import SeenJob

PASSED_OVER_MOST = 10_000
"""Maximum number of unseen runs that are recorded for one change."""
DELETED = "the job was deleted"


def run_facts(old: SeenJob | None, new: SeenJob, now: float) -> tuple[RunFact, ...]:
    """The runs that the change is about: the newest one, the previous one, and unseen runs between them."""
    before = old.status.allocation if old is not None else None
    after = new.status.allocation
    if old is not None and before == after and old.status.service == new.status.service:
        return ()
    known = 0 if old is None else _newest(old)
    facts: list[RunFact] = []
    current = None if after is None else _run(new, after, old, now)
    until_s = now if current is None else current.granted_s
    if old is not None and before is not None and (after is None or after.run != before.run):
        facts.append(_left_behind(old, before, new, until_s=until_s, now=now))
    facts.extend(_passed_over(new, known, until_s))
    if current is not None and after is not None:
        held = old is not None and before is not None and before.run == after.run and not _is_over(old, before)
        facts.append(replace(current, seen=held or not _is_over(new, after)))
    return tuple(facts)


def ended_by_deletion(old: SeenJob, now: float) -> tuple[RunFact, ...]:
    """The end of the run of a deleted job, if the run held anything."""
    allocation = old.status.allocation
    if allocation is None or _is_over(old, allocation):
        return ()
    return (replace(_run(old, allocation, old, now), ended_s=now, outcome=UNKNOWN, reason=DELETED),)


def resize_facts(old: SeenJob | None, new: SeenJob, now: float) -> tuple[ResizeFact, ...]:
    """True if the shares of the continuing run changed."""
    before = old.status.allocation if old is not None else None
    after = new.status.allocation
    if before is None or after is None or before.run != after.run or not after.workers or not before.workers:
        return ()
    shares = _shares(after.workers)
    if shares == _shares(before.workers) or after.state == "Released":
        return ()
    return (ResizeFact(uid=new.uid, run=after.run, at_s=now, shares=shares),)


def _why_revoked(job: SeenJob, allocation: Allocation) -> str:
    """The extender's words: the rule and the jobs that get the GPUs, if a plan ended the run."""
    found = [one.text for one in job.status.preemptions or () if one.run == allocation.run]
    return f"{allocation.reason}: {found[-1]}" if found and allocation.reason else allocation.reason


def _newest(job: SeenJob) -> int:
    """The highest number of a run that the status names."""
    allocation, service = job.status.allocation, _service(job)
    last = service.last.run if service.last is not None else 0
    return max(service.run, service.ended_run, last, allocation.run if allocation is not None else 0)


def _service(job: SeenJob) -> ServiceStatus:
    return job.status.service or ServiceStatus()


def _is_over(job: SeenJob, allocation: Allocation) -> bool:
    return allocation.state == "Released" or _service(job).ended_run >= allocation.run


def _run(job: SeenJob, allocation: Allocation, old: SeenJob | None, now: float) -> RunFact:
    """The run of an allocation, from the statuses of its job."""
    run = allocation.run
    shares = _shares(allocation.workers) if allocation.state != "Released" else ()
    started_s = _started(job, run) if _started(job, run) is not None else _started(old, run)
    granted_s = now if started_s is None else min(now, started_s)
    over = _is_over(job, allocation)
    ended_s = _end(old, job, run, now) if over else None
    revoked = allocation.state == "Revoked" or (over and bool(allocation.reason))
    last = _last(job, run)
    shared = allocation.shared_gpu
    partners = () if shared is None else tuple(shared.asked if shared.seen is None else shared.seen)
    return RunFact(
        uid=job.uid,
        run=run,
        purpose=allocation.purpose,
        gpu_type=allocation.gpu_type,
        gpus=sum(share.gpus for share in shares) or job.spec.gpus,
        shares=shares,
        granted_s=granted_s if ended_s is None else min(granted_s, ended_s),
        started_s=started_s,
        revoked_s=(now if ended_s is None else ended_s) if revoked else None,
        revoked_reason=_why_revoked(job, allocation) if revoked else "",
        ended_s=ended_s,
        outcome=last.outcome if last is not None else (UNKNOWN if _service(job).ended_run >= run else ""),
        reason=last.reason if last is not None else "",
        steps_per_s=allocation.steps_per_second,
        proportional_steps_per_s=allocation.proportional_steps_per_second,
        partners=partners,
    )


def _left_behind(old: SeenJob, before: Allocation, new: SeenJob, *, until_s: float, now: float) -> RunFact:
    """The previous run, whose end is known from the accounting only."""
    told = _run(old, before, old, now)
    last = _last(new, before.run) or _last(old, before.run)
    ended_s = min(until_s, _end(old, new, before.run, now))
    return replace(
        told,
        granted_s=min(told.granted_s, ended_s),
        ended_s=ended_s,
        outcome=last.outcome if last is not None else UNKNOWN,
        reason=last.reason if last is not None else "",
        seen=not _is_over(old, before),
    )


def _passed_over(new: SeenJob, known: int, at_s: float) -> list[RunFact]:
    """Runs between the newest known run and that of the allocation, which began and ended unseen."""
    allocation = new.status.allocation
    newest = _newest(new)
    own = allocation.run if allocation is not None else 0
    first = max(known, newest - PASSED_OVER_MOST) + 1
    return [_unseen(new, run, at_s) for run in range(first, newest + 1) if run != own]


def _unseen(job: SeenJob, run: int, at_s: float) -> RunFact:
    last = _last(job, run)
    return RunFact(
        uid=job.uid,
        run=run,
        purpose="Profile" if last is not None and last.outcome == "Profiled" else "Train",
        gpu_type="",
        gpus=job.spec.gpus,
        shares=(),
        granted_s=at_s,
        ended_s=at_s,
        outcome=UNKNOWN if last is None else last.outcome,
        reason="" if last is None else last.reason,
        seen=False,
    )


def _last(job: SeenJob, run: int) -> RunOutcome | None:
    last = _service(job).last
    return last if last is not None and last.run == run else None


def _started(job: SeenJob | None, run: int) -> float | None:
    if job is None:
        return None
    service = _service(job)
    if service.running_since is None or service.run != run or service.ended_run >= run:
        return None
    return parse_time(service.running_since)


def _end(old: SeenJob | None, new: SeenJob, run: int, now: float) -> float:
    """When a run ended: its service was added to the sum in the same write that closed it."""
    started_s = _started(old, run)
    if old is None or started_s is None or _service(new).ended_run != run:
        return now
    served_s = (_service(new).attained_gpu_seconds - _service(old).attained_gpu_seconds) / new.spec.gpus
    return min(now, started_s + max(0.0, served_s))


def _shares(workers: list[NodeShare]) -> tuple[Share, ...]:
    return tuple(
        Share(node=one.node, gpus=one.gpus, cpu_millis=one.cpu_millis, memory_bytes=one.memory_bytes) for one in workers
    )
