"""HiGHS, as the programmes here use it."""

from typing import Any, Final

import numpy as np

from synergy_core.model.snapshot import FieldError
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.programme.point import InfeasibleError, SolverError
from synergy_core.policies.allocation.programme.starting_basis import Basis

DUAL: Final = 1
PRIMAL: Final = 4
"""HiGHS' numbers for the two simplex methods."""
_TOLERANCE = 1e-9
_LATE = "Time limit reached"
_KNOWN = ("Optimal", _LATE)


def highspy_module() -> Any:
    """The module. Raises FieldError where it is not installed."""
    try:
        import highspy  # noqa: PLC0415 - only allocations need it, and it is an extra
    except ImportError as error:
        problem = "the allocation policies need a solver; pip install 'kube-synergy[solver]'"
        raise FieldError("policy", problem) from error
    return highspy


def basis_of(first: Basis, *, level: bool) -> Any:
    """A basis in the words of HiGHS. Basic are also the level, if there is one, and the row of a surplus, which is
    none."""
    highspy = highspy_module()
    status = highspy.HighsBasisStatus
    basis = highspy.HighsBasis()
    columns = np.concatenate([[level], first.activities])
    basis.col_status = np.where(columns, status.kBasic, status.kLower).tolist()
    rows = [(first.speeds, status.kLower), (np.concatenate([first.times, first.workers]), status.kUpper)]
    basis.row_status = [one for basic, else_ in rows for one in np.where(basic, status.kBasic, else_).tolist()]
    basis.row_status = [*basis.row_status, status.kBasic]
    basis.valid, basis.alien = True, False
    return basis


def new_solver() -> Any:
    """HiGHS with one thread, silent, and with the tolerance of every programme here."""
    highs = highspy_module().Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", 0),
        ("primal_feasibility_tolerance", _TOLERANCE),
        ("dual_feasibility_tolerance", _TOLERANCE),
    ):
        highs.setOptionValue(option, value)
    return highs


def run(highs: Any, budget: Budget, *, from_basis: bool) -> bool:
    """Solve the programme that HiGHS has. True: time ran out with something feasible in hand.

    Raises OutOfTimeError, InfeasibleError, or SolverError.
    """
    status = _outcome(highs, budget)
    if status not in _KNOWN and from_basis:
        # from a basis the primal simplex is the faster one, and the one to give up on numbers many orders apart
        highs.clearSolver()
        highs.setOptionValue("simplex_strategy", DUAL)
        status = _outcome(highs, budget)
    if status == "Optimal":
        return False
    if status == _LATE:
        if highs.getInfo().primal_solution_status == 2:
            return True
        raise OutOfTimeError
    if status in {"Infeasible", "Primal infeasible or unbounded"}:
        raise InfeasibleError
    raise SolverError(f"HiGHS ended with {status!r}")


def _outcome(highs: Any, budget: Budget) -> str:
    left = budget.left()
    if left <= 0.0:
        raise OutOfTimeError
    if np.isfinite(left):
        highs.setOptionValue("time_limit", highs.getRunTime() + left)
    highs.run()
    return str(highs.modelStatusToString(highs.getModelStatus()))
