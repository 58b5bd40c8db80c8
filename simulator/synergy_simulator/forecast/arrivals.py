"""Future arrivals, drawn from the past ones.

Arrivals of training jobs come in bursts, and their rate changes over the day and from day to day. A bootstrap of single
gaps would draw neither. So whole blocks of the past are drawn: a draw is made of blocks that each begin at a random
moment of the past, one after the other (the circular block bootstrap of Politis and Romano, 1992). Where the past has
several days, a block begins at the hour of the day that it is drawn for.

The past is itself one of those that could have been, and a short one says little about the rate of arrivals. So a draw
first draws a past, half as many blocks as the past has, and then the future from these blocks alone (the predictive
bootstrap of Harris, 1989, with m out of n blocks). Half, because a mean of few blocks that resemble their neighbours
is less certain than one of as many independent ones. The farther a draw looks ahead and the shorter the past is, the
more the draws differ.
"""

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from synergy_core.model.snapshot import PastJob, Profile, Snapshot
from synergy_simulator.inputs.profiles import flat_profile
from synergy_simulator.workloads.workload import Task

DAY_S: Final = 86_400.0
_SHORTEST_S: Final = 3_600.0
_BLOCKS: Final = 8
"""So many blocks at least make up the past, or there would be little to draw from."""

_KNOWN: Final = 0.5
"""So many blocks a draw knows, as a part of those that make up the past."""


@dataclass(frozen=True, slots=True)
class Past:
    """What has arrived: by time ascending, and the moments between which it did. Times in seconds."""

    tasks: tuple[Task, ...]
    since_s: float
    until_s: float

    @property
    def span_s(self) -> float:
        """How long was looked at."""
        return self.until_s - self.since_s


def past_of(
    snapshot: Snapshot, known: Mapping[str, Task], history: Sequence[PastJob], *, until_s: float | None = None
) -> Past:
    """The past arrivals as tasks that can come again. `known` are the tasks of the snapshot's jobs by name.

    A task has the matrices of its model and GPUs (`model_profiles`), else those of a job of the snapshot that arrived
    at the same moment with as many GPUs. If neither is known, its speed follows from its time from arrival to end, as
    if it had not waited; a job of which that is not known either is left out.
    """
    present = {(task.arrival_s, task.gpus): task for task in known.values()}
    types = sorted({node.gpu_type for node in snapshot.nodes})
    tasks = [
        task
        for index, row in enumerate(sorted(history, key=lambda one: one.arrival_s))
        if (task := _task(index, row, snapshot.model_profiles, present, types)) is not None
    ]
    first = tasks[0].arrival_s if tasks else snapshot.now
    return Past(tuple(tasks), first, snapshot.now if until_s is None else until_s)


def _task(
    index: int,
    row: PastJob,
    profiles: Mapping[str, Mapping[str, Mapping[str, Profile]]],
    present: Mapping[tuple[float, int], Task],
    types: Sequence[str],
) -> Task | None:
    like = present.get((row.arrival_s, row.gpus))
    measured = profiles.get(row.model, {}).get(str(row.gpus), {})
    name = f"past-{index}"
    if like is not None and not (measured and row.steps is not None):
        return replace(like, name=name)
    steps = row.steps
    if not measured:
        if row.finish_s is None or row.finish_s <= row.arrival_s:
            return None
        steps = row.finish_s - row.arrival_s
        measured = dict.fromkeys(types, flat_profile(1.0))
    if steps is None:
        return None
    base = like or Task(
        name=name, arrival_s=row.arrival_s, gpus=row.gpus, model=row.model, steps=steps, profiles=measured,
        share_steps_per_s=1.0, alone_s=0.0, family=row.model,
    )  # fmt: skip
    speed = max(max(line) for profile in measured.values() for line in profile.steps_per_s)
    return replace(base, name=name, steps=steps, profiles=measured, share_steps_per_s=speed)


def lasting_s(past: Past, seed: str) -> float:
    """For how long jobs go on coming as in the past, seconds; the same seed draws the same.

    The history does not say so. What has lasted for s seconds lasts for more than x further ones with probability s /
    (s + x), if the present is no special moment of the whole (Gott, 1993). An hour of history says nothing about next
    week.
    """
    chance = random.Random(f"lasting {seed}").random()  # noqa: S311 - no secret
    return past.span_s * chance / (1.0 - chance)


def drawn(
    past: Past, now: float, until_s: float, seed: str, step_s: Callable[[float], float] = lambda _moment: 0.0
) -> Iterator[Task]:
    """Arrivals after `now` and up to `until_s`, in their order. The same seed draws the same.

    The simulation holds GPUs for at least `step_s` of a moment. Of shorter jobs only as many come as make the same load
    when each of them takes so long.
    """
    if not past.tasks or past.span_s <= 0:
        return
    chance = random.Random(seed)  # noqa: S311 - no secret
    length = min(DAY_S, max(_SHORTEST_S, past.span_s / _BLOCKS), past.span_s)
    times = [task.arrival_s for task in past.tasks]
    known = [chance.random() for _ in range(max(1, round(_KNOWN * past.span_s / length)))]
    begin, number = now, 0
    while begin < until_s:
        source = _source(past, begin, chance.choice(known))
        for task in _block(past, times, source, length):
            arrival = begin + (task.arrival_s - source) % past.span_s
            if not now < arrival <= until_s:
                continue
            stretched = _stretch(task, step_s(arrival))
            if stretched == 1.0 or chance.random() * stretched < 1.0:
                number += 1
                yield replace(task, name=f"drawn-{number}", arrival_s=arrival, steps=task.steps * stretched)
        begin += length


def _stretch(task: Task, least_s: float) -> float:
    """How many times longer the task is if it takes `least_s` at its share; 1 if it is not shorter."""
    alone_s = task.steps / task.share_steps_per_s if task.share_steps_per_s > 0.0 else inf
    return max(1.0, least_s / alone_s)


def _source(past: Past, begin: float, part: float) -> float:
    """Where in the past a block begins that is put at `begin`, at this part of the past, from 0 to below 1."""
    days = int(past.span_s // DAY_S)
    if days < 2:
        return past.since_s + part * past.span_s
    back = (begin - past.until_s) % DAY_S
    return past.until_s - DAY_S * (1 + int(part * days)) + back


def _block(past: Past, times: Sequence[float], source: float, length: float) -> Iterator[Task]:
    """The tasks of the past from `source` on, for so long; the past goes round."""
    first = bisect_left(times, source)
    count = len(past.tasks)
    for offset in range(count):
        task = past.tasks[(first + offset) % count]
        if (task.arrival_s - source) % past.span_s >= length:
            return
        yield task
