"""Max-min fairness with water filling (Gavel, section 4.3, last paragraph): Pareto efficient.

The smallest weighted normalised throughput is that of `max_min_fairness`; of all such X this one has the largest second
smallest, and so on.
"""

import numpy as np

from synergy_core.allocation.budget import Budget
from synergy_core.allocation.filling import Fill, fill
from synergy_core.allocation.policies import max_min_fairness
from synergy_core.allocation.policies.max_min_fairness import unit_throughput
from synergy_core.allocation.policy import Found, Policy, setting
from synergy_core.allocation.problem import Problem


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    unit = unit_throughput(problem)
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


POLICY = Policy(allocate, max_min_fairness.objective, max_min_fairness.NORMALISATION)
