"""An allocation of Gavel beside the same linear programme given to HiGHS directly."""

from performance.case import Case
from synergy_cli.bench.allocations import drawn_table, problem
from synergy_cli.bench.modelling import by_highs, programme_of
from synergy_core.policies.allocation import solve


def max_min(jobs: int) -> Case:
    """Max-min fairness of jobs that are all different."""
    made = problem(drawn_table(0), jobs, pairs=False, different=True, seed=0)
    programme = programme_of(made)
    return Case(lambda: solve(made, "max-min-fairness"), lambda: by_highs(programme))
