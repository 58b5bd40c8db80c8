"""What past rounds decided, from the history."""

from collections.abc import Iterable
from typing import Final

from synergy_dashboard.api.past import amounts
from synergy_dashboard.facts import History, JobFact, ResizeFact, RunFact, WaitFact
from synergy_dashboard.live.scope import Scope
from synergy_view.rounds import Decided, Round, What, by_round
from synergy_view.words import count, cpus, gib, listed

_FURTHER: Final = 8
_GIVEN_BACK: Final = ("Yielded", "Evicted")
"""Outcomes of runs whose job is not done."""


def decisions(store: History, scope: Scope, *, now: float, rounds: int, round_s: float) -> list[Round]:
    """The last `rounds` rounds in which something was decided, the newest first. The time looked at grows until it has
    so many, until the history of the scope begins, or until it has more than an answer reads: then the rounds that were
    read whole are the answer."""
    begin = store.first_s(scope.namespaces)
    stretch = rounds * round_s
    while True:
        since = now - stretch
        decided, known_s = _decided(store, scope, since, now)
        found = by_round(decided, round_s, most=rounds)
        whole = [one for one in found if one.starts_s > known_s]
        if len(whole) == rounds or begin is None or since <= begin or known_s >= since:
            return whole or found[:1]
        stretch *= _FURTHER


def _decided(store: History, scope: Scope, since: float, now: float) -> tuple[list[Decided], float]:
    """What was decided, and the time after which that is all."""
    asked = since, now + 1, scope.namespaces, amounts.MOST_FACTS
    runs, resizes, waits = store.runs(*asked), store.resizes(*asked), store.waits(*asked)
    known_s = max(
        amounts.known_since_s(moments)
        for moments in (amounts.ends(runs, now), [one.at_s for _, one in resizes], [one.since_s for _, one in waits])
    )
    decided = [one for job, run in runs for one in of_run(job, scope.run(run)) if since <= one.at_s]
    decided += [of_resize(job, resize) for job, resize in resizes]
    return decided + [of_wait(job, wait) for job, wait in waits], known_s


def of_run(job: JobFact, run: RunFact) -> Iterable[Decided]:
    """That a run began, and that it ended. A run that the recorder did not see has no begin."""
    name = f"{job.namespace}/{job.name}"
    kind = "profile run" if run.purpose == "Profile" else "run"
    if run.seen:
        message = f"{kind} {run.run} gets {count(run.gpus, f'{run.gpu_type} GPU')}"
        message += f" on {listed([share.node for share in run.shares])}" if run.shares else ""
        message += f", shared with {', '.join(run.partners)}" if run.partners else ""
        yield Decided(at_s=run.granted_s, job=name, what="started", reason=run.purpose, message=message)
    if run.ended_s is not None:
        said = run.revoked_reason or run.reason
        message = f"{kind} {run.run}" + (f": {said}" if said else "")
        what: What = "leaves" if run.outcome in _GIVEN_BACK else "ended"
        yield Decided(at_s=run.ended_s, job=name, what=what, reason=run.outcome, message=message)


def of_resize(job: JobFact, resize: ResizeFact) -> Decided:
    """That a run got other CPU and memory."""
    millis = sum(share.cpu_millis for share in resize.shares)
    memory = sum(share.memory_bytes for share in resize.shares)
    message = f"run {resize.run} has {cpus(millis)} CPU and {gib(memory)} now"
    return Decided(
        at_s=resize.at_s, job=f"{job.namespace}/{job.name}", what="resized", reason="Resized", message=message
    )


def of_wait(job: JobFact, wait: WaitFact) -> Decided:
    """That a job began to wait for a reason."""
    return Decided(
        at_s=wait.since_s, job=f"{job.namespace}/{job.name}", what="waits", reason=wait.reason, message=wait.message
    )
