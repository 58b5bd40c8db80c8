"""The modelling library and the solver behind it: loaded when a mechanism first optimises."""

from typing import Any

from synergy_core.model.snapshot import FieldError


def modelling() -> tuple[Any, Any]:
    """cvxpy and scipy.sparse; raises FieldError where they are not installed, or HiGHS is not."""
    try:
        import cvxpy  # noqa: PLC0415 - takes a second to load, and only optimising mechanisms need it
        import highspy  # noqa: F401, PLC0415 - cvxpy finds it by itself
        from scipy import sparse  # noqa: PLC0415
    except ImportError as error:
        problem = f"opt needs a solver, and {error.name} is not installed; pip install 'kube-synergy[solver]'"
        raise FieldError("mechanism", problem) from error
    return cvxpy, sparse
