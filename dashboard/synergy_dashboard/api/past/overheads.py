"""How long jobs could have trained on their GPUs and did not, from the history. Pure."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from statistics import fmean
from typing import Final

from synergy_dashboard.facts import JobFact, RunFact

_MOST_GAP_S: Final = 60.0
"""A job that got its GPUs later than this after they were free waited for something else."""
_Told = tuple[JobFact, Sequence[RunFact]]
_Held = tuple[RunFact, int]
"""A run, and its GPUs on a node."""


def overheads(
    jobs: Iterable[_Told], resized: Collection[str], gpus: Mapping[str, int], others: Iterable[RunFact] = ()
) -> tuple[float, float]:
    """Seconds from the moment a job could have had its GPUs that it did not train when it began, and each time it began
    again; 0 where unknown.

    That is what the runs of a job that succeeded took beyond its steps at the planned speed: until they got GPUs that
    were free, to start, to save and to end. If no job tells that, because runs were resized or had different speeds,
    the time until the workers ran stands for it. `resized` are the uids of jobs of which a run was resized, `gpus` the
    GPUs of the nodes, `others` all further runs that held some: profile runs, and runs of jobs that are not exported.
    """
    held = [(job, _to_their_end(job, runs)) for job, runs in jobs]
    more_runs = list(others)
    free = _Nodes([*(run for _, runs in held for run in runs), *more_runs], gpus)
    profiled_s: dict[str, float] = {}
    for run in more_runs:
        if run.purpose == "Profile" and run.ended_s is not None:
            profiled_s[run.uid] = max(profiled_s.get(run.uid, 0.0), run.ended_s)
    once: list[float] = []
    more: list[tuple[int, float]] = []
    first: list[float] = []
    later: list[float] = []
    for job, runs in held:
        begins = _begins(max(job.created_s, profiled_s.get(job.uid, 0.0)), runs, free)
        waits = [run.started_s - due for run, due in zip(runs, begins, strict=True) if run.started_s is not None]
        first += waits[:1]
        later += waits[1:]
        extra = _extra_s(job, runs, begins) if job.uid not in resized else None
        if extra is not None and len(runs) == 1:
            once.append(extra)
        elif extra is not None:
            more.append((len(runs) - 1, extra))
    start = max(0.0, _mean(once or first))
    again = [(extra - start) / times for times, extra in more]
    return start, max(0.0, _mean(again or later))


def _to_their_end(job: JobFact, runs: Sequence[RunFact]) -> list[RunFact]:
    """The runs, the last one until the job was done: so long its GPUs were nobody else's."""
    if not runs or job.phase != "Succeeded" or job.finished_s is None or runs[-1].ended_s is None:
        return list(runs)
    return [*runs[:-1], replace(runs[-1], ended_s=max(runs[-1].ended_s, job.finished_s))]


def _begins(ready_s: float, runs: Sequence[RunFact], free: "_Nodes") -> list[float]:
    """When each run could have had its GPUs: once the job was there and measured (`ready_s`), its run before had ended,
    and they were free."""
    found = []
    for run in runs:
        due_s = max(ready_s, free.since(run))
        found.append(due_s if 0.0 <= run.granted_s - due_s <= _MOST_GAP_S else run.granted_s)
        ready_s = run.granted_s if run.ended_s is None else run.ended_s
    return found


def _extra_s(job: JobFact, runs: Sequence[RunFact], begins: Sequence[float]) -> float | None:
    """What the runs took beyond the job's steps; None if it is not known."""
    speeds = {run.steps_per_s for run in runs}
    if job.phase != "Succeeded" or len(speeds) != 1 or not all(run.seen for run in runs):
        return None
    (speed,) = speeds
    if speed <= 0 or any(run.ended_s is None for run in runs):
        return None
    took = sum((run.ended_s or 0.0) - due for run, due in zip(runs, begins, strict=True))
    return took - job.steps / speed


class _Nodes:
    """Since when nodes have had room."""

    def __init__(self, runs: Iterable[RunFact], gpus: Mapping[str, int]) -> None:
        held: dict[str, list[_Held]] = defaultdict(list)
        for run in runs:
            for share in run.shares:
                held[share.node].append((run, share.gpus))
        self._nodes = {name: _Node(held[name], number) for name, number in gpus.items()}

    def since(self, run: RunFact) -> float:
        """When the last of the run's nodes got room for it, before it got its GPUs."""
        known = [(self._nodes.get(share.node), share.gpus) for share in run.shares]
        moments = [run.granted_s if node is None else node.since(run, gpus) for node, gpus in known]
        return max(moments, default=run.granted_s)


class _Node:
    """The runs of a node by begin and by end, with how many GPUs those before each had."""

    def __init__(self, held: Sequence[_Held], gpus: int) -> None:
        begins = sorted((run.granted_s, number) for run, number in held)
        self._ended = sorted(((_until_s(run), number, run.uid, run.run) for run, number in held))
        self._gpus = gpus
        self._begins = [begin for begin, _ in begins]
        self._ends = [one[0] for one in self._ended]
        self._taken = list(accumulate((number for _, number in begins), initial=0))
        self._left = list(accumulate((one[1] for one in self._ended), initial=0))

    def since(self, run: RunFact, wanted: int) -> float:
        """When it got room for so many GPUs of the run, before the run got them; 0 for longer ago than counts."""
        first = bisect_left(self._ends, run.granted_s - _MOST_GAP_S)
        for place in reversed(range(first, bisect_right(self._ends, run.granted_s))):
            until, _, uid, number = self._ended[place]
            if (uid, number) != (run.uid, run.run) and self._free_before(until) < wanted:
                return until
        return 0.0

    def _free_before(self, moment: float) -> int:
        began, ended = bisect_left(self._begins, moment), bisect_left(self._ends, moment)
        return self._gpus - (self._taken[began] - self._left[ended])


def _until_s(run: RunFact) -> float:
    """What a plan takes from a run is free for the next one from then on."""
    until = run.ended_s if run.revoked_s is None else run.revoked_s
    return float("inf") if until is None else max(until, run.granted_s)


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
