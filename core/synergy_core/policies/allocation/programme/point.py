"""A solution of the programme, and what keeps it from having one."""

from dataclasses import dataclass

from synergy_core.model.arrays import Floats


class SolverError(Exception):
    """A solver does not cope with the numbers."""


class InfeasibleError(SolverError):
    """No allocation reaches the base throughputs."""


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A solution. Optimal unless `cut_short`, which is feasible only."""

    time: Floats
    """M: time of each class of activities."""
    level: float
    price: Floats
    """G: what one more step per second demanded of every job of a class takes from the objective; at least 0."""
    duals: Floats
    """What HiGHS says of all rows of the programme, with the sign of a maximum."""
    gain: Floats
    surplus: Floats
    """M: what was solved for."""
    objective: float
    cut_short: bool


@dataclass(frozen=True, slots=True, eq=False)
class Beyond:
    """What the prices of a `Point` say of jobs that have none."""

    scarcity: Floats
    """G: how far the price of one class alone could be raised with the optimum unchanged, and all prices still valid.

    Where it is above 0, no job of the class can have more unless another one with a price has less: p . throughput <=
    its value here holds for all feasible throughputs also with that price. It is the smallest reduced cost / rate over
    what jobs of the class can do, added to the price.
    """
    ceiling: Floats
    """G: steps per second above which no job of a class without scarcity can rise as long as all that have a price keep
    what they have: its fastest speed where time costs nothing (of activities without a reduced cost).

    For, with a small price e of its own and what e can bring it there as the price of its time, all prices are still
    valid: p . throughput + e throughput_g <= their value here + e ceiling_g for all feasible throughputs.
    """
