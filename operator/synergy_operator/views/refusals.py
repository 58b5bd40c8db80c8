"""What the API server refused to a job."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from synergy_api.reasons import Reason


@dataclass(frozen=True, slots=True)
class RefusedResize:
    """A size that the API server refused to give a worker's first container, with its words and when (Unix time).
    `invalid` says that no such change can be made to a pod, whatever the amounts."""

    cpu_millis: int
    memory_bytes: int
    message: str
    at: float
    invalid: bool = False


@dataclass(frozen=True, slots=True)
class Refusals:
    """What the API server refused since the operator started: nothing here has to survive a restart, since the same
    request is refused again. `run` is the run that could not start, with the server's words and the `reason` that names
    what was refused; `invalid` says that the pod itself is wrong, so that it will be refused for ever; `resizes` are
    the sizes refused by pod uid."""

    run: int = 0
    message: str = ""
    invalid: bool = False
    reason: Reason = Reason.POD_REFUSED
    resizes: Mapping[str, RefusedResize] = field(default_factory=dict)
