"""Merges a new fact about a job or run into the kept one. Pure.

The value that was seen first stays. A recorder that was killed before it wrote its position sees a change a second
time, at a later time by the clock, and the merge changes nothing.
"""

from dataclasses import replace

from synergy_dashboard.facts import JobFact, ResizeFact, RunFact, Share, WaitFact
from synergy_dashboard.store.bundle import WaitNow

UNKNOWN = "Unknown"


def merged_job(kept: JobFact | None, told: JobFact) -> JobFact:
    """The job as the new fact has it. The first deletion time stays."""
    if kept is None:
        return told
    return replace(
        told,
        fingerprint=told.fingerprint or kept.fingerprint,
        finished_s=told.finished_s if kept.finished_s is None else kept.finished_s,
        deleted_s=told.deleted_s if kept.deleted_s is None else kept.deleted_s,
    )


def merged_run(kept: RunFact | None, told: RunFact) -> RunFact:
    """The run as it was seen first, with values that became known later. Times of different clocks are put in order."""
    if kept is None:
        return _in_order(told)
    first = told if told.seen and not kept.seen else kept
    revoked = kept if kept.revoked_s is not None else told
    ended = told if kept.outcome in ("", UNKNOWN) and told.outcome not in ("", kept.outcome) else kept
    merged = replace(
        first,
        started_s=told.started_s if kept.started_s is None else kept.started_s,
        revoked_s=revoked.revoked_s,
        revoked_reason=revoked.revoked_reason,
        ended_s=told.ended_s if kept.ended_s is None else kept.ended_s,
        outcome=ended.outcome,
        reason=ended.reason,
        steps_per_s=told.steps_per_s or kept.steps_per_s,
        proportional_steps_per_s=told.proportional_steps_per_s or kept.proportional_steps_per_s,
        partners=told.partners or kept.partners,
    )
    return _in_order(merged)


def _in_order(run: RunFact) -> RunFact:
    """The run with its times in order: grant, start, end, by the recorder's clock."""
    started_s = None if run.started_s is None else max(run.started_s, run.granted_s)
    began_s = run.granted_s if started_s is None else started_s
    ended_s = None if run.ended_s is None else max(run.ended_s, began_s)
    revoked_s = None if run.revoked_s is None else max(run.revoked_s, run.granted_s)
    if revoked_s is not None and ended_s is not None:
        revoked_s = min(revoked_s, ended_s)
    return replace(run, started_s=started_s, ended_s=ended_s, revoked_s=revoked_s)


def merged_wait(kept: WaitFact | None, told: WaitNow) -> tuple[WaitFact, ...]:
    """The changed waits; `kept` is the open one."""
    if kept is not None and kept.reason == told.reason:
        now = replace(kept, message=told.message, position=told.position)
        return () if now == kept else (now,)
    changed = []
    at_s = told.at_s
    if kept is not None:
        at_s = max(at_s, kept.since_s)
        changed.append(replace(kept, until_s=at_s))
    if told.reason:
        changed.append(
            WaitFact(
                uid=told.uid,
                since_s=at_s,
                until_s=None,
                reason=told.reason,
                message=told.message,
                position=told.position,
            )
        )
    return tuple(changed)


def is_news(shares: tuple[Share, ...] | None, told: ResizeFact) -> bool:
    """True if a resize changes the known shares of a run (None: no shares are known)."""
    return shares != told.shares
