"""The Gantt chart and the rounds in it."""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from synergy_dashboard.api.answers import Departure, Round, RoundsPage, Segment
from synergy_dashboard.api.past import amounts
from synergy_dashboard.facts import History, JobFact, ResizeFact, RunFact

MOST_ROUNDS: Final = 2_000
Held = tuple[JobFact, RunFact]
Resized = tuple[JobFact, ResizeFact]


def rounds_page(
    store: History, namespaces: Collection[str] | None, *, now: float, until_s: float, rounds: int, round_s: float
) -> RoundsPage:
    """So many rounds, the last of which contains `until_s`. If that is more than an answer reads, the page begins with
    the first round that was read whole."""
    end = (math.floor(until_s / round_s) + 1) * round_s
    since = end - rounds * round_s
    runs = store.runs(since, end, namespaces, amounts.MOST_FACTS)
    resizes = store.resizes(since, end, namespaces, amounts.MOST_FACTS)
    known_s = max(map(amounts.known_since_s, (amounts.ends(runs, end), [one.at_s for _, one in resizes])))
    if known_s >= since:
        rounds = max(1, math.ceil((end - known_s) / round_s) - 1)
        since = end - rounds * round_s
        runs = [one for one in runs if one[1].ended_s is None or one[1].ended_s >= since]
        resizes = [one for one in resizes if one[1].at_s >= since]
    return RoundsPage(
        now=now,
        since_s=since,
        until_s=end,
        round_s=round_s,
        segments=[segment for job, run in runs for segment in _segments(job, run)],
        rounds=_rounds(runs, resizes, since, end, count=rounds),
    )


def _segments(job: JobFact, run: RunFact) -> Iterable[Segment]:
    for share in run.shares:
        yield Segment(
            job=_name(job),
            tenant=job.tenant,
            run=run.run,
            purpose=run.purpose,
            gpu_type=run.gpu_type,
            node=share.node,
            gpus=share.gpus,
            start_s=run.granted_s,
            end_s=run.ended_s,
            outcome=run.outcome,
            reason=run.revoked_reason or run.reason,
        )


def _rounds(runs: Sequence[Held], resizes: Sequence[Resized], since: float, end: float, *, count: int) -> list[Round]:
    """The newest first. Each run counts in the rounds that it overlaps."""
    length = (end - since) / count
    came: list[list[str]] = [[] for _ in range(count)]
    left: list[list[Departure]] = [[] for _ in range(count)]
    resized: list[set[str]] = [set() for _ in range(count)]
    gpu_s = [0.0] * count
    for job, run in runs:
        ended = end if run.ended_s is None else run.ended_s
        if since <= run.granted_s < end:
            came[_index(run.granted_s, since, length, count)].append(_name(job))
        if run.ended_s is not None and since <= run.ended_s < end:
            gone = Departure(job=_name(job), outcome=run.outcome, reason=run.revoked_reason or run.reason)
            left[_index(run.ended_s, since, length, count)].append(gone)
        first, last = (_index(moment, since, length, count) for moment in (run.granted_s, ended))
        for index in range(first, last + 1):
            start = since + index * length
            gpu_s[index] += run.gpus * max(0.0, min(ended, start + length) - max(run.granted_s, start))
    for job, resize in resizes:
        resized[_index(resize.at_s, since, length, count)].add(_name(job))
    return [
        Round(
            start_s=since + index * length,
            end_s=since + (index + 1) * length,
            came=sorted(came[index]),
            left=sorted(left[index], key=lambda one: one.job),
            resized=sorted(resized[index]),
            gpus_given=round(gpu_s[index] / length),
        )
        for index in reversed(range(count))
    ]


def _index(moment: float, since: float, length: float, count: int) -> int:
    return min(count - 1, max(0, math.floor((moment - since) / length)))


def _name(job: JobFact) -> str:
    return f"{job.namespace}/{job.name}"
