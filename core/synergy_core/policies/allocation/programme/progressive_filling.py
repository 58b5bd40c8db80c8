"""Water filling (Gavel, section 4.3): levels rise together until some jobs saturate; the others rise on.

Jobs belong to entities. An entity's level rises at its weight. Fairness splits that among its jobs that are not
bottlenecked, in proportion to their weights; FIFO gives all of it to the first of them.

A job is *bottlenecked* when its normalised throughput cannot rise without another's falling. The paper finds these jobs
by a MILP. Here the dual prices p of the linear programme that found the level decide: p . throughput cannot rise for
any feasible throughput. So no job with p > 0 can rise while the others keep what they have, nor one whose price could
be above 0 with the same right (`Beyond.scarcity`). Of the jobs that the level raises at least one has p > 0, so each
step ends at least one job. The prices of a degenerate optimum may not show a bottlenecked job; it then holds the next
level at the same height and is found there. The outcome is that of the exact test.

A job's own limit, its fastest speed all the time, is part of what a level demands (`Fill.at`). So a level passes any
number of such limits in one step, and of jobs of a FIFO queue that are served in full. Once some jobs are bottlenecked,
the limits of the others are what they can have beside those (`Beyond.ceiling`): where they take all V100s, the speed on
the types that are left. So a queue that is served by the last free type does not take a step for each job either.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from synergy_core.model.arrays import Floats, Ints
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.policy import Found, Setting, setting
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.programme.levels import Level, highest_level

_PRICED = 1e-7
"""Of the largest price among the jobs that rise: what is less is the solver's rounding."""
_FULL = 1e-9
_NEARLY = 1e-5
_HAIR = 2e-8
"""A later programme demands this much less than was reached."""


@dataclass(frozen=True, slots=True)
class Group:
    """The classes of jobs of one entity, and how they share what it gets."""

    members: Ints
    """Indices of classes, for FIFO in the order of the queue."""
    weight: float
    fifo: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Fill:
    """The levels, in normalised throughput of one job of each class (G), and the jobs that may still rise."""

    level: Floats
    limit: Floats
    """G: a job that has all it could have beside those that are bottlenecked already."""
    weight: Floats
    """G: within its entity, or in all where a class is jobs on their own."""
    members: Floats
    """G: jobs."""
    rises: np.typing.NDArray[np.bool_]
    """G: neither bottlenecked nor at its limit."""
    groups: tuple[Group, ...]
    on_their_own: np.typing.NDArray[np.bool_]
    """G: classes whose jobs are an entity each."""

    def at(self, z: float) -> Floats:
        """G: the levels when every entity's has risen by z times its weight."""
        level = self.level.copy()
        own = self.on_their_own & self.rises
        level[own] = np.minimum(level[own] + z * self.weight[own], self.limit[own])
        for group in self.groups:
            rising = group.members[self.rises[group.members]]
            if len(rising):
                level[rising] += (self._in_turn if group.fifo else self._together)(rising, z * group.weight)
        return level

    def _in_turn(self, rising: Ints, amount: float) -> Floats:
        room = self.limit[rising] - self.level[rising]
        before = np.cumsum(room) - room
        return np.clip(amount - before, 0.0, room)

    def _together(self, rising: Ints, amount: float) -> Floats:
        room, weight, members = self.limit[rising] - self.level[rising], self.weight[rising], self.members[rising]
        full_at = room / weight
        order = np.argsort(full_at)
        # what has been given when a job gets full: to the full ones their room, to each of the others by weight
        behind = (weight * members)[order]
        behind = behind[::-1].cumsum()[::-1] - behind
        given = np.cumsum((room * members)[order]) + behind * full_at[order]
        height = np.interp(amount, np.concatenate([[0.0], given]), np.concatenate([[0.0], full_at[order]]))
        return np.asarray(np.minimum(height * weight, room))

    @property
    def nearest(self) -> float | None:
        """A z at which about as many jobs of the FIFO queues as there are queues are served; None without such."""
        queues = [(group.members[self.rises[group.members]], group.weight) for group in self.groups if group.fifo]
        return max(
            (float((self.limit - self.level)[jobs[0]]) / weight for jobs, weight in queues if len(jobs)), default=None
        )

    @property
    def highest(self) -> float:
        """The z at which every job that rises is at its limit."""
        room = np.where(self.rises, self.limit - self.level, 0.0)
        own = np.where(self.on_their_own, room / self.weight, 0.0).max(initial=0.0)
        in_groups = (float(room[g.members] @ self.members[g.members]) / g.weight for g in self.groups)
        return max(float(own), *in_groups, 0.0)

    def rising_now(self, level: Floats) -> np.typing.NDArray[np.bool_]:
        """G: whose level would rise on from where `at` came to: of a FIFO queue the first that is not full.

        Where that one lacks but a solver's tolerance, those behind it count as well: one of them may be what the level
        stopped at.
        """
        open_ = self.rises & (level < self.limit * (1.0 - _FULL))
        for group in self.groups:
            if group.fifo:
                waiting = group.members[open_[group.members]]
                served = np.flatnonzero(level[waiting] < self.limit[waiting] * (1.0 - _NEARLY))
                if len(served):
                    open_[waiting[served[0] + 1 :]] = False
        return open_


def fill_each(problem: Problem, unit: Floats, budget: Budget) -> Found:
    """The X with the largest smallest throughput / unit (J), of these the one with the largest second smallest, ..."""
    here = setting(problem, budget, unit)
    units = here.of_classes(unit)
    every = np.ones(len(units), dtype=bool)
    start = Fill(
        level=np.zeros(len(units)),
        limit=here.programme.fastest / units,
        weight=np.ones(len(units)),
        members=here.programme.members,
        rises=every,
        groups=(),
        on_their_own=every,
    )
    time, to_the_end = fill(here, start, units)
    return Found(here.x(time), "optimal" if to_the_end else "time-limit")


def fill_above(here: Setting, reached: Level, floor: Floats, unit: Floats) -> Found:
    """Of the X in which every class of jobs has at least `floor` (G), which `reached` has but for rounding, one that
    divides the rest as equally as possible, in normalised throughput (`unit`, J)."""
    units = here.of_classes(unit)
    limit = here.programme.fastest / units
    had = np.minimum(floor, here.programme.throughput(reached.time))
    level = np.minimum(had * (1.0 - _HAIR) / units, limit)
    every = np.ones(len(units), dtype=bool)
    start = Fill(
        level=level,
        limit=limit,
        weight=every.astype(float),
        members=here.programme.members,
        rises=level < limit * (1.0 - 2.0 * _HAIR),
        groups=(),
        on_their_own=every,
    )
    if not reached.proved or not start.rises.any():
        return Found(here.x(reached.time), "optimal" if reached.proved else "time-limit")
    try:
        time, to_the_end = fill(here, start, units)
    except OutOfTimeError:
        return Found(here.x(reached.time), "time-limit")
    return Found(here.x(time), "optimal" if to_the_end else "time-limit")


def fill(here: Setting, start: Fill, unit: Floats) -> tuple[Floats, bool]:
    """Raise the levels until no job can rise; `unit` (G) is the throughput at which a normalised throughput is 1.

    Returns the time of each class of activities (M), and whether it went to the end. Raises OutOfTimeError where time
    ran out before the first level.
    """
    state, reached = start, None
    while state.rises.any():
        try:
            level = _raise(here, state, unit, reached)
        except OutOfTimeError:
            if reached is None:
                raise
            return reached.time, False
        reached = level
        if not level.proved:
            return level.time, False
        state = _after(state, level, unit)
    if reached is None:
        raise ValueError("no job could rise from the start")
    return reached.time, True


def _raise(here: Setting, state: Fill, unit: Floats, before: Level | None) -> Level:
    requirement: Callable[[float], Floats] = lambda z: state.at(z) * unit  # noqa: E731
    had = None if before is None else here.programme.throughput(before.time)
    return highest_level(here.programme, requirement, low=0.0, high=state.highest, first=state.nearest, reached=had)


def _after(state: Fill, level: Level, unit: Floats) -> Fill:
    now = state.at(level.z)
    rising = state.rising_now(now)
    price = np.where(state.rises, level.scarcity * unit, 0.0)
    held = price > _PRICED * price.max(initial=0.0)
    limit = np.where(state.rises, np.minimum(state.limit, np.maximum(now, level.ceiling / unit)), state.limit)
    still = state.rises & ~held & (now < limit * (1.0 - _FULL))
    if np.array_equal(still, state.rises):  # what rises on rises by less than the solver can tell
        still &= ~rising
    return Fill(now, limit, state.weight, state.members, still, state.groups, state.on_their_own)
