"""What values the fields of a snapshot may have, and the error for one that they may not have."""

from typing import Annotated

from pydantic import ConfigDict, Field

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

Name = Annotated[str, Field(min_length=1)]
_MOST = 1 << 50
"""No amount is larger (as bytes it is a pebibyte): sums over a cluster stay within 64 bits."""
Count = Annotated[int, Field(ge=0, le=_MOST)]
Positive = Annotated[int, Field(ge=1, le=_MOST)]
Priority = Annotated[int, Field(ge=-(1 << 31), lt=1 << 31)]
"""The value of a Kubernetes PriorityClass."""
Seconds = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=0)]
SLOWEST, FASTEST = 1e-6, 1e9
"""Steps per second that a job can be said to have: beyond them nothing trains, and sums and quotients of speeds would
leave what a float can hold, in the plan of every job."""
Speed = Annotated[float, Field(ge=SLOWEST, le=FASTEST)]
LIGHTEST, HEAVIEST = 1e-6, 1e6
Weight = Annotated[float, Field(ge=LIGHTEST, le=HEAVIEST)]
Part = Annotated[float, Field(ge=1e-6, le=1e6)]
"""A speed as part of another."""
Price = Annotated[float, Field(ge=0, le=1e9)]
Moment = Annotated[float, Field(ge=-1e15, le=1e15)]


DEVICES = ("gpus", "shared_gpus")
"""Kinds of devices that limits of quotas count by these words; others go by a name with a slash, as their resource."""


class FieldError(ValueError):
    """A value that cannot be used: `path` is the field within the object, `problem` says what to change."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


def check_speed(speed: float, path: str) -> None:
    """Raise FieldError for a speed that is neither 0 nor from SLOWEST to FASTEST."""
    if speed != 0.0 and not SLOWEST <= speed <= FASTEST:
        raise FieldError(path, f"must be 0 or from {SLOWEST:g} to {FASTEST:g} steps per second, is {speed:g}")


def check_kind(kind: str, path: str, *others: str) -> None:
    """Raise FieldError for a kind of devices that is none, nor one of the `others`."""
    known = (*DEVICES, *others)
    if "/" not in kind and kind not in known:
        raise FieldError(path, f"must be {', '.join(known)} or a resource such as amd.com/gpu, is {kind!r}")


def unique(kind: str, names: list[str], named_by: str = "name") -> None:
    """Raise FieldError for the first name that the list `kind` has twice; both elements are named."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index:
            raise FieldError(
                f"{kind}[{index}].{named_by}", f"{name!r} is also {kind}[{first[name]}]; names must differ"
            )
