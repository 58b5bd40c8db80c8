"""A first basis for a programme of jobs alone, from prices of the worker types.

Apart from the workers, such a programme falls apart into its classes of jobs. Given a price for a worker's time on each
type, the cheapest *choice* of a class is found without the others:

* the throughput that it must have, on one type;
* the whole time on a slow and a fast type, in the mix that gives that throughput;
* where time brings a gain, also all of it on one type, or none.

Prices are found as in a market (tatonnement), first on a sample of the classes: the price of a type rises if too much
of it is asked for, and falls otherwise. The level is the one at which all workers are paid for.

At the right prices the choices are the optimal basis, except for the few classes that split over two choices of equal
cost. The classes with the smallest difference are taken for them, one for each full type. So the basis is optimal or
nearly so, and the simplex method proves or mends it. Whatever is guessed here, the optimum is the solver's.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from synergy_core.model.arrays import Floats, Ints
from synergy_core.policies.allocation.programme.activities import Activities

Mask = npt.NDArray[np.bool_]

_SAMPLE = 256
_STEPS, _LAST_STEPS = 30, 15
"""Of the prices: on the sample, on all."""
_PACE, _LAST_PACE = 0.5, 0.1
_FULL = 0.98
"""A type of which so much is asked for is full."""
_CLEARED = 5e-4
"""Prices at which what is asked for differs by less from what there is are good enough."""
_HAIR, _BELOW = 1e-12, 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """What is basic, as many as there are rows: columns of activities (M), rows of speeds and times (G), of workers
    (W). The level is basic where there is one, and the row of a surplus, which is none."""

    activities: Mask
    speeds: Mask
    times: Mask
    workers: Mask


class Market:
    """The classes of jobs of one programme, each with the columns that it can use, the slowest first."""

    def __init__(self, acts: Activities, members: Floats, workers: Floats) -> None:
        count, columns = len(members), int(acts.column.max(initial=0)) + 1
        rate, which = np.zeros((count, columns)), np.zeros((count, columns), dtype=np.int64)  # of speed 0: any
        rate[acts.first, acts.column] = acts.first_rate
        which[acts.first, acts.column] = np.arange(len(acts))
        order = np.argsort(rate, axis=1, kind="stable")
        self.rate = np.take_along_axis(rate, order, axis=1)
        self.which = np.take_along_axis(which, order, axis=1)
        self.type_ = acts.type_[self.which]
        self.scale = np.zeros(count)
        self.scale[acts.first] = acts.scale
        self.members, self.workers, self.size = members, workers, len(acts)
        self.slow, self.fast = np.array(list(combinations(range(columns), 2)), dtype=np.int64).reshape(-1, 2).T
        self.basics = _basics(columns, self.slow, self.fast)

    def basis(self, base: Floats, direction: Floats | None, gain: Floats) -> Basis:
        """For the programme with these numbers (`Programme.solve`)."""
        every = np.arange(len(base))
        few = every[:: max(1, len(every) // _SAMPLE)]
        taken = self.members * self.scale
        whole = _Offers(self, every, base, direction, gain=gain, part=1.0)
        sample = _Offers(self, few, base, direction, gain=gain, part=float(taken[few].sum() / taken.sum()))
        prices, level = sample.settle(sample.start(), 0.0, _STEPS, _PACE)
        prices, level = whole.settle(prices, min(level, whole.most), _LAST_STEPS, _LAST_PACE)
        return self._assembled(whole, prices, level)

    def best_ratio(self, base: Floats, gain: Floats, paid: Floats) -> float:
        """The largest gain per payment, `paid` (W) by worker, at which every class has `base`, were there any number of
        workers: by Dinkelbach's sequence."""
        offers = _Offers(self, np.arange(len(base)), base, None, gain=gain, part=1.0)
        ratio = 0.0
        for _ in range(_STEPS):
            _, _, asked, lost, _ = offers.choose(ratio * paid, 0.0)
            spent = float(asked @ paid)
            better = ratio if spent <= 0 else ratio - lost / spent
            if better <= ratio * (1.0 + _BELOW):
                break
            ratio = better
        return ratio

    def _assembled(self, offers: "_Offers", prices: Floats, level: float) -> Basis:
        choice, cost, asked, _, _ = offers.choose(prices, level)
        full = (asked >= _FULL * self.workers) & (self.workers > 0)
        basic = self.basics[choice]
        wanted = int(full.sum()) - (1 if offers.levelled else 0)
        if wanted < 0:  # the level is what the job that is slowest for it can do at most
            slowest = int(np.argmin(offers.room))
            basic[slowest] = False
            basic[slowest, -3] = True
            wanted = 0
        ties = self._ties(offers, cost, choice, full, wanted)
        for index, other in ties:
            basic[index] |= self.basics[other]
        slack = ~full
        least = np.argsort(np.where(full, asked / np.maximum(self.workers, _HAIR), np.inf), kind="stable")
        slack[least[: wanted - len(ties)]] = True
        activities = np.zeros(self.size, dtype=bool)
        activities[self.which[basic[:, :-2]]] = True
        return Basis(activities, basic[:, -2], basic[:, -1], slack)

    def _ties(self, offers: "_Offers", cost: Floats, choice: Ints, full: Mask, wanted: int) -> list[tuple[int, int]]:
        """Classes, and the other choice of each, that cost nearly the same; that they cost the same gives each full
        type its price, in those of other types or, without a level, in gain. So they join types, and the gain."""
        kinds, index = self.basics[: cost.shape[1]], np.arange(len(choice))
        one_other = (kinds[None, :, :] & kinds[:, None, :]).sum(axis=2) == 1
        gap = np.where(one_other[choice], cost - cost[index, choice][:, None], np.inf)
        other = np.argmin(gap, axis=1)
        size = np.abs(cost[index, choice])
        near = np.argsort(gap[index, other] / (size + size.mean() + _HAIR), kind="stable")
        alone = len(full)
        joined = np.append(np.where(full, np.arange(alone), alone), alone)  # the last is the gain
        found: list[tuple[int, int]] = []
        for at in near[:_SAMPLE].tolist():
            if len(found) == wanted:
                break
            both = kinds[choice[at]] | kinds[other[at]]
            ends = set(joined[self.type_[at, np.flatnonzero(both[:-2])]].tolist())
            if offers.levelled:
                ends.discard(alone)
            elif both[-2:].all():
                ends.add(alone)
            if len(ends) > 1 and np.isfinite(gap[at, other[at]]):
                joined[np.isin(joined, list(ends))] = max(ends)
                found.append((at, int(other[at])))
        return found


def _basics(columns: int, slow: Ints, fast: Ints) -> Mask:
    """Choices x (columns, the row of the speed, the row of the time): what is basic with each choice."""
    one, mixed = np.eye(columns, dtype=bool), np.zeros((len(slow), columns), dtype=bool)
    mixed[np.arange(len(slow)), slow] = mixed[np.arange(len(slow)), fast] = True
    ends = np.repeat([[False, True], [False, False], [True, False], [True, True]], [columns, len(slow), columns, 1], 0)
    return np.hstack([np.concatenate([one, mixed, one, np.zeros((1, columns), dtype=bool)]), ends])


class _Offers:
    """Some classes of a market, what they must have, and the workers there are for them."""

    def __init__(
        self, market: Market, which: Ints, base: Floats, direction: Floats | None, *, gain: Floats, part: float
    ) -> None:
        self.levelled = direction is not None
        self._rate, self._type = market.rate[which], market.type_[which]
        self._scale, self._members = market.scale[which], market.members[which]
        self._workers = market.workers * part
        self._base, self._direction = base[which], np.zeros(len(which)) if direction is None else direction[which]
        # of each job's time, as its column is of the class's
        self._worth = np.where(self._rate > 0, gain[market.which[which]], 0.0)
        self._slow, self._fast = market.slow, market.fast
        slow, fast = self._rate[:, self._slow], self._rate[:, self._fast]
        with np.errstate(divide="ignore", invalid="ignore"):
            self._time = np.where(self._rate > 0, 1.0 / self._rate, 0.0)
            self._mix = np.where(fast > slow, 1.0 / (fast - slow), 0.0)
            self.room = np.where(self._direction > 0, (self._rate[:, -1] - self._base) / self._direction, np.inf)
        self._of_slow, self._open = slow, self._rate > 0
        self.most = max(0.0, float(self.room.min())) if self.levelled else 0.0

    def start(self) -> Floats:
        """Prices (W) to begin with: all the same."""
        if self.levelled:
            return np.full(len(self._workers), 1.0 / self._workers.sum())
        gained = float((self._worth.max(axis=1) / self._scale).mean())
        return np.full(len(self._workers), max(gained, _HAIR))

    def settle(self, prices: Floats, level: float, steps: int, pace: float) -> tuple[Floats, float]:
        """Prices, and the level, after so many steps; a type whose price went too far goes on in smaller steps."""
        paces, before = np.full(len(prices), pace), np.zeros(len(prices))
        for _ in range(steps):
            if self.levelled:
                prices = prices / float(prices @ self._workers)
            _, _, asked, paid, slope = self.choose(prices, level)
            if self.levelled:
                level = min(max(level + (1.0 - paid) / max(slope, 1e-300), 0.0), self.most)
            over = np.log(np.clip((asked + _HAIR) / np.maximum(self._workers, _HAIR), 0.1, 10.0))
            if np.abs(over).max() < _CLEARED or (over.max() <= 0 and self.levelled and level >= self.most):
                break
            paces *= np.where(over * before < 0, 0.4, 1.3)
            prices = prices * np.exp(paces * over)
            before = over
        return prices, level

    def choose(self, prices: Floats, level: float) -> tuple[Ints, Floats, Floats, float, float]:
        """Choice of each class, cost of all (classes x choices), workers asked for (W), what they cost, and what that
        rises by with the level."""
        # a hair below its full speed a job shows which slower type it would rather be on
        needed = np.minimum(self._base + level * self._direction, self._rate[:, -1] * (1.0 - _BELOW))[:, None]
        net = prices[self._type] * self._scale[:, None] - self._worth
        able = self._open & (self._rate >= needed * (1.0 - _HAIR))
        time = needed * self._time
        fast = (needed - self._of_slow) * self._mix
        mixes = (fast > 0) & (fast < 1.0)
        dearer = net[:, self._fast] - net[:, self._slow]
        offers = [np.where(able, net * time, np.inf), np.where(mixes, net[:, self._slow] + fast * dearer, np.inf)]
        if not self.levelled:
            offers += [np.where(able, net, np.inf), np.where(needed <= 0, 0.0, np.inf)]
        cost = np.concatenate(offers, axis=1)
        choice, rows, columns, mixed = np.argmin(cost, axis=1), np.arange(len(cost)), net.shape[1], len(self._slow)
        pair = np.where((choice >= columns) & (choice < columns + mixed), choice - columns, -1)
        column = np.where(choice < columns, choice, np.clip(choice - columns - mixed, 0, columns - 1))
        part = np.where(choice < columns, time[rows, column], 1.0) * (choice < 2 * columns + mixed)
        rise = np.where(choice < columns, net[rows, column] * self._time[rows, column], 0.0)
        if mixed:
            column = np.where(pair >= 0, self._fast[pair], column)
            part = np.where(pair >= 0, fast[rows, pair], part)
            rise = np.where(pair >= 0, dearer[rows, pair] * self._mix[rows, pair], rise)
        taken, types = self._members * self._scale, len(prices)
        asked = np.bincount(self._type[rows, column], weights=part * taken, minlength=types)
        two = np.flatnonzero(pair >= 0)
        asked += np.bincount(
            self._type[two, self._slow[pair[two]]], weights=((1.0 - part) * taken)[two], minlength=types
        )
        slope = float((rise * self._direction) @ self._members)
        return choice, cost, np.asarray(asked, dtype=float), float(cost[rows, choice] @ self._members), slope
