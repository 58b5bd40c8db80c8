"""A cluster in mid-life, which a simulation can begin with."""

from dataclasses import dataclass

from synergy_core.model.snapshot import Node, Quota
from synergy_simulator.engine.rounds.clock import RoundClock
from synergy_simulator.engine.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """Nodes and jobs at one moment. `runs` are as at `now`; the simulation moves them on."""

    now: float
    rounds: RoundClock
    nodes: tuple[Node, ...]
    runs: tuple[Run, ...]
    awaited: frozenset[str]
    """Names of the jobs with whose ends the simulation ends."""
    awaited_starts: frozenset[str] = frozenset()
    """Names of the jobs that must have started too before it ends."""
    quotas: tuple[Quota, ...] = ()
