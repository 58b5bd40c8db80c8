"""What looks for the allocations of plans: at once, or in a way of the caller's that may outlast the plan."""

from dataclasses import dataclass
from typing import Protocol

from synergy_core.policies.allocation import solve_in_time
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.problem import AllocationMatrix, Problem


@dataclass(frozen=True, eq=False)
class Sought:
    """The allocation of a policy that rounds follow."""

    problem: Problem
    policy: str
    aware: bool

    def solve(self, budget: Budget) -> AllocationMatrix:
        """Raises FieldError, SolverError and OutOfTimeError."""
        return solve_in_time(self.problem, self.policy, aware=self.aware, efficient=True, budget=budget)


@dataclass(frozen=True, slots=True, eq=False)
class LateSolution:
    """What was found after the plan that asked for it had to go on without."""

    sought: Sought
    answer: AllocationMatrix


class Solver(Protocol):
    """Looks for one allocation at a time."""

    def solve(self, sought: Sought, budget: Budget) -> AllocationMatrix:
        """What is found within the budget; raises FieldError, SolverError and OutOfTimeError."""

    def late(self) -> LateSolution | None:
        """What has been found since for an earlier plan; told once."""


class AtOnce:
    """A Solver for which the end of the budget is the end."""

    def solve(self, sought: Sought, budget: Budget) -> AllocationMatrix:
        """What is found within the budget."""
        return sought.solve(budget)

    def late(self) -> None:
        """Nothing ever."""
