"""Policies whose objective is a weighted sum of throughputs: one linear programme."""

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policy import Found, setting
from synergy_core.policies.allocation.problem import Problem


def maximise(problem: Problem, value: Floats, budget: Budget) -> Found:
    """The X with the largest sum of value_m * throughput(m, X); `value` (J) is per step per second."""
    here = setting(problem, budget, value)
    worth, acts = here.of_classes(value), here.programme.acts
    gain = worth[acts.first] * acts.first_rate + worth[acts.second] * acts.second_rate
    gain /= gain.max(initial=1e-300)
    point = here.programme.solve(base=np.zeros(len(worth)), gain=gain)
    return Found(here.x(point.time), "time-limit" if point.cut_short else "optimal")
