"""Policies as optimisation over effective throughput (Gavel, section 4): from a `Problem` to an `AllocationMatrix`.

    problem ──▶ policy ──▶ programme (activities, classes of equal jobs, HiGHS) ──▶ X

One file per policy in `policies/`, each entered here. A policy answers with an X within the constraints of section 3.1
and says what it is worth; pairs and placements are rows and columns of the same problem, and the agnostic version of
any policy is the policy on a problem in which it cannot see a difference (`agnostic`).
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.model.names import not_there
from synergy_core.model.snapshot import FieldError
from synergy_core.policies.allocation.agnostic import agnostic, evened, spread
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.policies import (
    allox,
    cost,
    fifo,
    finish_time_fairness,
    gandiva,
    hierarchical,
    isolated,
    makespan,
    max_min_fairness,
    max_throughput,
    proportional,
    shortest_job_first,
    strategy_proof,
    water_filling,
)
from synergy_core.policies.allocation.policy import Found, Policy, on_columns
from synergy_core.policies.allocation.problem import AllocationMatrix, Problem, check, within_bounds, within_most
from synergy_core.policies.allocation.shares import isolated_shares

ALLOCATION_POLICIES: Mapping[str, Policy] = {
    "allox": allox.POLICY,
    "fifo": fifo.POLICY,
    "finish-time-fairness": finish_time_fairness.POLICY,
    "gandiva": gandiva.POLICY,
    "hierarchical": hierarchical.POLICY,
    "isolated": isolated.POLICY,
    "makespan": makespan.POLICY,
    "max-min-fairness": max_min_fairness.POLICY,
    "max-min-fairness-water-filling": water_filling.POLICY,
    "max-throughput": max_throughput.POLICY,
    "min-cost": cost.MIN_COST,
    "min-cost-slo": cost.MIN_COST_SLO,
    "proportional": proportional.POLICY,
    "sjf": shortest_job_first.POLICY,
    "strategy-proof": strategy_proof.POLICY,
}


def solve(
    problem: Problem,
    policy: str,
    *,
    aware: bool = True,
    sharing: bool = True,
    efficient: bool = False,
    budget: Budget | None = None,
) -> AllocationMatrix:
    """The allocation of a policy; deterministic but for where a budget cuts it short.

    `aware=False`: heterogeneity-agnostic. `sharing=False`: without the problem's pairs. `efficient`: of the optima a
    Pareto efficient one, where the policy knows how to find it (it takes longer). When the budget ends the best
    allocation found so far is the answer; where there is none, the isolated allocation; the status says so. Raises
    FieldError for what cannot be solved, naming the field, and `programme.SolverError` where a solver does not cope
    with the numbers.
    """
    try:
        return solve_in_time(problem, policy, aware=aware, sharing=sharing, efficient=efficient, budget=budget)
    except OutOfTimeError:
        kind = ALLOCATION_POLICIES[policy]
        note = "the isolated allocation, which keeps no SLOs" if policy == "min-cost-slo" else "the isolated allocation"
        found = Found(on_columns(problem, isolated_shares(problem)), "time-limit", note)
        return _allocation(problem, kind, problem, found, found.x)


def solve_in_time(
    problem: Problem,
    policy: str,
    *,
    aware: bool = True,
    sharing: bool = True,
    efficient: bool = False,
    budget: Budget | None = None,
) -> AllocationMatrix:
    """As `solve`, but raises OutOfTimeError where the budget ended before there was any allocation."""
    if policy not in ALLOCATION_POLICIES:
        raise FieldError("policy", not_there(policy, sorted(ALLOCATION_POLICIES)))
    check(problem)
    kind = ALLOCATION_POLICIES[policy]
    seen = problem if sharing and kind.shares else _without_pairs(problem)
    view = seen if aware else agnostic(replace(seen, bounds=()))
    allocate = kind.efficient if efficient and kind.efficient is not None else kind.allocate
    found = allocate(view, budget or Budget())
    x = found.x if aware else _on_types(seen, view, found.x, by_cost=kind in _BY_COST)
    return _allocation(problem, kind, seen, found, x)


def _allocation(problem: Problem, kind: Policy, seen: Problem, found: Found, x: Floats) -> AllocationMatrix:
    """The answer, from X of what the policy has `seen` of the problem: its first rows."""
    x = within_most(seen, x)
    return AllocationMatrix(
        x=np.concatenate([x, np.zeros((problem.rows - len(x), len(problem.columns)))]),
        objective=kind.objective(seen, x) if found.value is None else found.value,
        status=found.status,
        solver=kind.solver,
        normalisation=kind.normalisation,
        note=found.note,
    )


_BY_COST = (cost.MIN_COST, cost.MIN_COST_SLO)


def _on_types(problem: Problem, view: Problem, x: Floats, *, by_cost: bool) -> Floats:
    """X of the agnostic view, where pools differ in nothing but their price, on the problem's own types."""
    return within_bounds(problem, spread(problem, x if by_cost else evened(view, x)))


def _without_pairs(problem: Problem) -> Problem:
    columns = len(problem.columns)
    return replace(problem, pairs=np.empty((0, 2), dtype=np.int64), pair_throughputs=np.empty((0, columns, 2)))
