"""What a forecast of a job says."""

from dataclasses import dataclass

UNKNOWN = {
    "NoSteps": "nobody knows yet how many steps an epoch has, or the job does not say its steps",
    "NotProfiled": "its speed is not known: it has not been measured, nor has a job of the same program",
    "NeverFits": "no GPU type that it may use has as many GPUs with the CPU and memory that it asks for at least",
    "Finished": "it has ended",
    "Suspended": "spec.suspend holds it",
    "NotPlanned": "no plan considers it now: kubectl synergy why",
    "NotTold": "no worker cluster has told an estimate yet: kubectl synergy why",
    "Hidden": "you may not list nodes, and the status has no estimate",
}
"""Why nothing is known, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The 10th, 50th and 90th percentile, seconds since the epoch; None: beyond the horizon or not known."""

    p10: float | None
    p50: float | None
    p90: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """The answer. `by` says what has made the forecast: `command`, this computer, or `extender`, the cluster's."""

    job: str
    state: str
    now: float
    unknown: str | None = None
    by: str = "command"
    draws: int = 0
    """Draws of further jobs; 0: no job has come from which to draw."""
    start: Range | None = None
    finish: Range | None = None
    start_without_arrivals: float | None = None
    finish_without_arrivals: float | None = None
