"""The linear programme behind every policy, with columns for pairs made when they are needed.

    maximise    level + sum_i gain_i Y_i
    subject to  throughput_g(Y) >= members_g (base_g + level * direction_g)     for each class of jobs g
                time_g(Y)       <= members_g
                sum_i scale_i Y_i over the activities of type j <= workers_j    for each type j
                sum_i surplus_i Y_i >= 0                                        where there is a surplus
                least_b <= sum_i scale_i Y_i <= most_b      for some jobs on a type (`bound_rows`)
                Y >= 0

Y is the time given to each class of activities (`symmetry`), per unit of time.

* Pairs are priced in (column generation). After each solve the reduced costs of all pairs outside the programme are
  computed, and the best are added. When none could improve the optimum, it is the optimum of the whole programme.
* HiGHS solves it, with one thread and a tolerance of 1e-9. The basis is kept from one call to the next. Where many
  classes of jobs run alone only, prices of the types give a better one (`starting_basis`).
"""

from functools import cached_property
from typing import Any

import numpy as np

from synergy_core.model.arrays import Floats, Ints
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.programme.activities import Activities
from synergy_core.policies.allocation.programme.bound_rows import NO_ROWS, BoundRows
from synergy_core.policies.allocation.programme.highs import DUAL, PRIMAL, basis_of, highspy_module, new_solver, run
from synergy_core.policies.allocation.programme.point import Beyond, Point, SolverError
from synergy_core.policies.allocation.programme.starting_basis import Market
from synergy_core.policies.allocation.programme.symmetry import Merged

_MANY = 200
"""Classes of jobs from which an interior-point method (with crossover to a vertex) is the faster start where there are
pairs, and a basis from prices (`starting_basis`) where there are none."""
_PRICED = 1e-7
"""Of the largest price for a class's fastest speed: what is less is the solver's rounding."""
_LOSS = 1e-8
"""Pairs are added until what those left out could bring is below this fraction of the objective."""


class Programme:
    """The programme of one problem; `solve` may be called again with other numbers, and starts where the last ended."""

    def __init__(self, merged: Merged, workers: Floats, budget: Budget, bounds: BoundRows = NO_ROWS) -> None:
        self.acts: Activities = merged.activities
        self.members = merged.members
        self._workers = workers
        self._budget = budget
        self._bounds = bounds
        self._classes = len(merged.members)
        self._unit = np.zeros(self._classes)  # above 0 at the end: each job has a type on which it runs alone
        np.maximum.at(self._unit, self.acts.first, self.acts.first_rate)
        np.maximum.at(self._unit, self.acts.second, self.acts.second_rate)
        self._same = self.acts.first == self.acts.second
        self._columns: Ints = self._first_columns()
        self._basis: Any = None
        many_alone = self.acts.alone == len(self.acts) and self._classes > _MANY and not len(bounds)
        self._market = Market(self.acts, self.members, workers) if many_alone else None

    @cached_property
    def _highs(self) -> Any:
        return new_solver()

    @cached_property
    def _matrix(self) -> tuple[Ints, Ints, Floats]:
        """The columns as they are where there is no surplus."""
        return self._entries(self._columns, np.zeros(len(self.acts)))

    def throughput(self, time: Floats) -> Floats:
        """G: steps per second of one job of each class."""
        acts, classes = self.acts, self._classes
        total = np.bincount(acts.first, weights=acts.first_rate * time, minlength=classes)
        total += np.bincount(acts.second, weights=acts.second_rate * time, minlength=classes)
        return total / self.members

    def topped_up(self, time: Floats, demanded: Floats) -> Floats:
        """M: `time` and what each class lacks of `demanded` (G) by the solver's tolerance, on its fastest type.

        It is next to nothing for the cluster, of which all then have that much less, and all that there was to be for a
        job with few steps to go, or with a millionth of the others' weight.
        """
        lacking = np.maximum(demanded - self.throughput(time), 0.0)
        if not lacking.any():
            return time
        acts, more = self.acts, time.copy()
        order = np.argsort(acts.first_rate[: acts.alone], kind="stable")
        fastest = np.zeros(self._classes, dtype=np.int64)
        fastest[acts.first[order]] = order
        more[fastest] += lacking * self.members / acts.first_rate[fastest]
        taken = np.bincount(acts.type_, weights=acts.scale * more, minlength=len(self._workers))
        busy = np.bincount(acts.first, weights=more, minlength=self._classes)
        busy += np.bincount(acts.second[acts.alone :], weights=more[acts.alone :], minlength=self._classes)
        full = max(float((taken[taken > 0] / self._workers[taken > 0]).max()), float((busy / self.members).max()))
        if len(self._bounds):
            full = max(full, float((self._bounds.coefficients @ more / np.maximum(self._bounds.most, 1e-300)).max()))
        return np.asarray(more / max(1.0, full))

    def best_ratio(self, base: Floats, gain: Floats, paid: Floats) -> float:
        """About the largest gain (M) per payment (W, for each worker) of all that give every class of jobs its `base`
        (G), and not below it; 0 where it is not known. A place to start from, no more."""
        if self._market is None:
            return 0.0
        return self._market.best_ratio(base, gain * self.members[self.acts.first], paid)

    @property
    def fastest(self) -> Floats:
        """G: steps per second of a job that has all it could have; no allocation gives more."""
        return self._unit

    def solve(
        self,
        *,
        base: Floats,
        direction: Floats | None = None,
        gain: Floats | None = None,
        surplus: Floats | None = None,
    ) -> Point:
        """The optimum: over the level if there is a direction, else of the gains (M) alone.

        With `surplus` (M) also sum_i surplus_i Y_i >= 0. Raises InfeasibleError where the base cannot be reached,
        OutOfTimeError where time ran out before anything feasible was known, SolverError for numbers that no solver
        copes with.
        """
        gain = np.zeros(len(self.acts)) if gain is None else gain
        if not all(np.isfinite(given).all() for given in (base, direction, gain, surplus) if given is not None):
            raise SolverError("a number that is not finite")
        surplus = np.zeros(len(self.acts)) if surplus is None else surplus / np.abs(surplus).max(initial=1e-300)
        highs = self._highs
        if highs.passModel(self._model(base, direction, gain, surplus)) == highspy_module().HighsStatus.kError:
            raise SolverError("HiGHS does not take the numbers")
        if self._market is not None and (direction is not None or (gain.any() and self._basis is None)):
            worth = gain * self.members[self.acts.first]
            self._basis = basis_of(self._market.basis(base, direction, worth), level=direction is not None)
        highs.setOptionValue("simplex_strategy", DUAL if self._basis is None else PRIMAL)
        if self._basis is not None:
            highs.setBasis(self._basis)
        highs.setOptionValue("solver", "ipm" if self._basis is None and self._classes > _MANY else "choose")
        values = np.empty(0)
        while True:
            try:
                cut_short = run(highs, self._budget, from_basis=self._basis is not None)
            except OutOfTimeError:
                if not len(values):
                    raise
                cut_short = True  # what was found before the last columns came serves
                break
            solution = highs.getSolution()
            values, duals = np.array(solution.col_value), -np.array(solution.row_dual)
            objective = -highs.getInfo().objective_function_value
            fresh = np.empty(0, dtype=np.int64) if cut_short else self._that_improve(duals, gain, surplus, objective)
            if not len(fresh):
                break
            self._add(highs, fresh, gain, surplus)
        self._basis = highs.getBasis()
        time = np.zeros(len(self.acts))
        time[self._columns[: len(values) - 1]] = np.maximum(values[1:], 0.0)
        price = np.maximum(-duals[: self._classes], 0.0) / self._unit
        return Point(time, float(values[0]), price, duals, gain, surplus, float(objective), cut_short)

    def beyond(self, point: Point) -> Beyond:
        """What the prices of a point say of jobs that have none."""
        room, ceiling = self._room(self._reduced(point.duals, point.gain, point.surplus), point.price)
        return Beyond(point.price + room, ceiling)

    def _first_columns(self) -> Ints:
        """All jobs alone, and for each job and column the pairs that keep most of both jobs' speed."""
        acts = self.acts
        pairs = np.arange(acts.alone, len(acts))
        alone = np.zeros((self._classes, int(acts.column.max(initial=0)) + 1))
        alone[acts.first[: acts.alone], acts.column[: acts.alone]] = acts.first_rate[: acts.alone]
        with np.errstate(divide="ignore"):
            kept = acts.first_rate[pairs] / alone[acts.first[pairs], acts.column[pairs]]
            kept += acts.second_rate[pairs] / alone[acts.second[pairs], acts.column[pairs]]
        return np.concatenate([np.arange(acts.alone), pairs[np.argsort(-kept, kind="stable")[: 2 * self._classes]]])

    def _entries(self, columns: Ints, surplus: Floats) -> tuple[Ints, Ints, Floats]:
        """Starts, rows and values of columns, compressed by column."""
        acts, classes = self.acts, self._classes
        first, second, same = acts.first[columns], acts.second[columns], self._same[columns]
        last = np.full(len(columns), 2 * classes + len(self._workers))
        rows = np.stack(
            [first, classes + first, 2 * classes + acts.type_[columns], last, second, classes + second], axis=1
        )
        values = np.stack(
            [
                (acts.first_rate + np.where(self._same, acts.second_rate, 0.0))[columns]
                / (self.members * self._unit)[first],
                np.where(same & (columns >= acts.alone), 2.0, 1.0) / self.members[first],
                acts.scale[columns],
                surplus[columns],
                acts.second_rate[columns] / (self.members * self._unit)[second],
                1.0 / self.members[second],
            ],
            axis=1,
        )
        there = np.ones(rows.shape, dtype=bool)
        there[:, 3] = surplus[columns] != 0.0
        there[:, 4:] = ~same[:, None]
        if len(self._bounds):
            bounded = self._bounds.coefficients[:, columns].T
            rows = np.hstack([rows, np.broadcast_to(last[0] + 1 + np.arange(len(self._bounds)), bounded.shape)])
            values, there = np.hstack([values, bounded]), np.hstack([there, bounded != 0.0])
        starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return starts, rows[there], values[there]

    def _model(self, base: Floats, direction: Floats | None, gain: Floats, surplus: Floats) -> Any:
        highspy = highspy_module()
        starts, rows, values = self._entries(self._columns, surplus) if surplus.any() else self._matrix
        classes, width = self._classes, len(self._columns) + 1
        if direction is None:
            level_rows, level_values = np.empty(0, dtype=np.int64), np.empty(0)
        else:
            level_rows = np.flatnonzero(direction)
            level_values = -direction[level_rows] / self._unit[level_rows]
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = width, 2 * classes + len(self._workers) + 1 + len(self._bounds)
        lp.col_cost_ = np.concatenate([[0.0 if direction is None else -1.0], -gain[self._columns]])
        lp.col_lower_ = np.zeros(width)
        lp.col_upper_ = np.concatenate([[0.0 if direction is None else np.inf], np.full(width - 1, np.inf)])
        lp.row_lower_ = np.concatenate(
            [base / self._unit, np.full(classes + len(self._workers), -np.inf), [0.0], self._bounds.least]
        )
        lp.row_upper_ = np.concatenate(
            [np.full(classes, np.inf), np.ones(classes), self._workers, [np.inf], self._bounds.most]
        )
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.concatenate([[0], len(level_rows) + starts]).astype(np.int32)
        lp.a_matrix_.index_ = np.concatenate([level_rows, rows]).astype(np.int32)
        lp.a_matrix_.value_ = np.concatenate([level_values, values])
        return lp

    def _reduced(self, duals: Floats, gain: Floats, surplus: Floats) -> Floats:
        """M: what a unit of time of each activity would add to the objective; at an optimum at most 0."""
        acts, classes = self.acts, self._classes
        duals, of_bounds = np.split(duals, [2 * classes + len(self._workers) + 1])
        speed, time = -duals[:classes] / (self.members * self._unit), duals[classes : 2 * classes] / self.members
        paired = np.arange(len(acts)) >= acts.alone
        worth = speed[acts.first] * acts.first_rate + speed[acts.second] * acts.second_rate
        taken = (
            time[acts.first]
            + np.where(paired, time[acts.second], 0.0)
            + duals[2 * classes : -1][acts.type_] * acts.scale
        )
        if len(self._bounds):
            taken = taken + of_bounds @ self._bounds.coefficients
        return np.asarray(gain - duals[-1] * surplus + worth - taken)

    def _room(self, reduced: Floats, price: Floats) -> tuple[Floats, Floats]:
        """G: by how much the price of each class can rise before one of its activities pays; and the fastest speed of a
        job in those that pay at once."""
        acts, same = self.acts, self._same
        both = np.where(same & (np.arange(len(acts)) >= acts.alone), 2.0, 1.0)
        least, most = np.full(self._classes, np.inf), np.zeros(self._classes)
        slack = np.maximum(-reduced, 0.0)
        nothing = _PRICED * float((price * self._unit).max(initial=0.0))
        ends = (
            (acts.first, np.where(same, acts.first_rate + acts.second_rate, acts.first_rate), slack, both),
            (acts.second[~same], acts.second_rate[~same], slack[~same], 1.0),
        )
        for of, rate, left, jobs in ends:
            with np.errstate(divide="ignore", invalid="ignore"):
                rise = np.where(rate > 0, left / rate * self.members[of], np.inf)
            np.minimum.at(least, of, rise)
            free = rise * self._unit[of] <= nothing
            np.maximum.at(most, of[free], (rate / jobs)[free])
        return np.where(np.isfinite(least), least, 0.0), most

    def _that_improve(self, duals: Floats, gain: Floats, surplus: Floats, objective: float) -> Ints:
        """Pairs outside the programme with the best reduced costs, if any could matter."""
        if len(self._columns) == len(self.acts):
            return np.empty(0, dtype=np.int64)
        reduced = self._reduced(duals, gain, surplus)
        reduced[self._columns] = 0.0
        # all activities together take at most the workers: what they could bring is at most that times the best
        least = _LOSS * max(abs(objective), 1e-3) / self._workers.sum()
        found = np.flatnonzero(reduced > least)
        most = 2 * self._classes + 100
        if len(found) > most:
            found = found[np.argpartition(-reduced[found], most)[:most]]
        return np.sort(found)

    def _add(self, highs: Any, columns: Ints, gain: Floats, surplus: Floats) -> None:
        starts, rows, values = self._entries(columns, surplus)
        count = len(columns)
        highs.addCols(
            count,
            -gain[columns],
            np.zeros(count),
            np.full(count, np.inf),
            len(rows),
            starts[:-1].astype(np.int32),
            rows.astype(np.int32),
            values,
        )
        highs.setOptionValue("solver", "simplex")
        highs.setOptionValue("simplex_strategy", PRIMAL)  # what there was stays feasible: go on from it
        self._columns = np.concatenate([self._columns, columns])
        self._matrix = self._entries(self._columns, np.zeros(len(self.acts)))
