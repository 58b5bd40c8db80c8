"""How a profile run measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Literal


@dataclass(frozen=True)
class Options:
    """How to measure.

    Fast steps are measured for `min_seconds`, many periods of the CPU limit, even if that is more than `steps` steps.
    """

    warmup_steps: int = 5
    steps: int = 50
    timeout_s: float = 600.0
    min_seconds: float = 2.0
    max_relative_error: float = 0.25
    grace_s: float = 10.0
    regex: str = ""
    """How steps are read from the command's output; empty if the library in the command reports them."""
    counters: Literal["Auto", "Nsight", "Off"] = "Off"
    """GPU counters: `Auto` takes what the node has, `Nsight` a further run under Nsight Compute."""
    pair_seconds: float = 0.0
    """Beside another command on a shared GPU: how long both train after their warm-up; 0 for a command alone. The
    result then has the moments at which steps ended, and no rate is too noisy: the other one comes and goes."""
    workers: int = 1
    """Processes of the command that train together: of several, what they send is measured."""
