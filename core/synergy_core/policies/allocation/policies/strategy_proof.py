"""A fair policy in which no job gains by a false throughput (the partial allocation mechanism of Cole, Gkatzelis and
Goel, EC 2013; named by Gavel, section 4.4, as future work).

    X* maximises prod_m throughput(m, X)^w_m (proportional fairness); job m gets the fraction f_m of its part of X*,

    f_m = (prod_{i != m} throughput(i, X*)^w_i / prod_{i != m} throughput(i, X*_without_m)^w_i)^(1 / w_m) <= 1.

What m then has, throughput(m, X*) f_m to the power w_m, is the product of all at X* divided by a number that m does not
influence, so the truth maximises it. With equal weights no job loses more than 1 - 1/e of its part. The policy is not
Pareto efficient, and does not keep all jobs above the isolated share: no policy can have all three (Sun et al., 2019).

It solves J + 1 convex programmes (an interior-point method), so it is for tens of jobs rather than hundreds. Pairs are
not used.
"""

from typing import Any

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.model.snapshot import FieldError
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.policies import max_min_fairness
from synergy_core.policies.allocation.policy import Found, Policy
from synergy_core.policies.allocation.problem import Problem, effective_throughput, within_bounds
from synergy_core.policies.allocation.programme.activities import activities, matrix
from synergy_core.policies.allocation.programme.point import SolverError
from synergy_core.policies.allocation.shares import isolated_throughput


def objective(problem: Problem, x: Floats) -> float:
    """The smallest weighted normalised throughput."""
    return max_min_fairness.objective(problem, x)


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    programme = _Nash(problem, budget)
    everyone = np.ones(len(problem.jobs), dtype=bool)
    x = programme.best(everyone)
    logs = np.log(effective_throughput(problem, x) / isolated_throughput(problem)) * problem.weight
    part = np.ones(len(problem.jobs))
    for job in range(len(problem.jobs)) if len(problem.jobs) > 1 else ():
        others = everyone.copy()
        others[job] = False
        without = programme.best(others)
        speed = effective_throughput(problem, without)[others] / isolated_throughput(problem)[others]
        lost = float(logs[others].sum() - (np.log(speed) * problem.weight[others]).sum())
        part[job] = min(1.0, np.exp(lost / problem.weight[job]))
    shares = x.copy()
    shares[: len(problem.jobs)] *= part[:, None]
    if programme.accurate:
        return Found(shares)
    return Found(shares, "heuristic", "Clarabel ended short of its accuracy; a false throughput may pay a little")


def _modelling() -> tuple[Any, Any]:
    try:
        import cvxpy  # noqa: PLC0415 - takes a second to load, and only this policy needs it
        from scipy import sparse  # noqa: PLC0415
    except ImportError as error:
        problem = f"strategy-proof needs {error.name}; pip install 'kube-synergy[solver]'"
        raise FieldError("policy", problem) from error
    return cvxpy, sparse


class _Nash:
    """The proportionally fair allocation of any of the jobs."""

    def __init__(self, problem: Problem, budget: Budget) -> None:
        self._problem, self._budget = problem, budget
        self._acts = activities(problem)
        self._cvxpy, self._sparse = _modelling()
        self.accurate = True
        """Whether every programme so far was solved to the solver's own tolerance."""

    def best(self, counted: np.typing.NDArray[np.bool_]) -> Floats:
        problem, acts, cp = self._problem, self._acts, self._cvxpy
        left = self._budget.left()
        if left <= 0:
            raise OutOfTimeError
        use = np.arange(acts.alone)[counted[acts.first[: acts.alone]]]
        time = cp.Variable(len(use), nonneg=True)
        names = np.cumsum(counted) - 1
        job = names[acts.first[use]]
        count = int(counted.sum())
        speed = self._rows(acts.first_rate[use] / isolated_throughput(problem)[acts.first[use]], job, count)
        constraints = [
            self._rows(np.ones(len(use)), job, count) @ time <= 1,
            self._rows(acts.scale[use], acts.type_[use], len(problem.types)) @ time <= problem.workers,
        ]
        weight = problem.weight[counted] / problem.weight[counted].max()
        programme = cp.Problem(cp.Maximize(weight @ cp.log(speed @ time)), constraints)
        try:
            programme.solve(solver=cp.CLARABEL, **({"time_limit": left} if np.isfinite(left) else {}))
        except cp.SolverError as error:
            raise SolverError(f"Clarabel: {error}") from error
        if programme.status not in {"optimal", "optimal_inaccurate"} or time.value is None:
            raise OutOfTimeError
        self.accurate &= programme.status == "optimal"
        found = np.zeros(len(acts))
        found[use] = np.maximum(time.value, 0.0)
        return within_bounds(problem, matrix(problem, acts, found))

    def _rows(self, values: Floats, rows: np.typing.NDArray[np.int64], count: int) -> Any:
        return self._sparse.csr_matrix((values, (rows, np.arange(len(values)))), shape=(count, len(values)))


POLICY = Policy(allocate, objective, max_min_fairness.NORMALISATION, solver="CLARABEL", shares=False)
