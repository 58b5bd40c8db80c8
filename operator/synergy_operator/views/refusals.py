"""What the API server refused to a job."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from synergy_api.amounts import Amounts
from synergy_api.reasons import Reason


@dataclass(frozen=True, slots=True)
class RefusedResize:
    """A resize of a worker's first container that the API server refused, with its message and the Unix time.

    `asked` is without GPUs. `invalid` means that a pod can never be changed so, whatever the amounts are.
    """

    asked: Amounts
    message: str
    at: float
    invalid: bool = False


@dataclass(frozen=True, slots=True)
class RefusedMember:
    """A TrainingJob of an array that the API server refused, with its message and the Unix time."""

    message: str
    at: float
    changed: str = ""
    """Name of the member that it would not change; empty if it would not make one."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """What the API server has refused since the operator started.

    A restart may lose it, because the same request is refused again.

    - `run` is the run that could not start, `message` the server's message, `reason` the kind of object refused.
    - `invalid` means that the pod itself is invalid, so a retry cannot help.
    - `resizes` are the refused resizes by pod uid.
    """

    run: int = 0
    message: str = ""
    invalid: bool = False
    reason: Reason = Reason.POD_REFUSED
    resizes: Mapping[str, RefusedResize] = field(default_factory=dict)
    member: RefusedMember | None = None
    """Of an array: the last refusal, until a member was made since, or that one changed."""
