"""What goes between the extender and its planner's process. Who only asks need not load what plans."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from synergy_core.model import snapshot as core
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig

LENGTH = struct.Struct("!Q")
PROCESSES_VARIABLE = "SYNERGY_PLANNER_PROCESSES"
"""In how many processes a plan may be made; the extender checks it at its start."""


@dataclass(frozen=True)
class Planned:
    """A plan and how many seconds `plan()` took."""

    plan: Plan
    seconds: float


@dataclass(frozen=True)
class Question:
    """A snapshot whose jobs come without their profiles: those are most of its size and hardly ever change.

    `profiles` are the new ones by job, `known` the jobs whose earlier ones still hold;
    `solve_s` is how many seconds the plan may wait for a new allocation.
    """

    snapshot: core.Snapshot
    config: PlanConfig
    profiles: Mapping[str, Mapping[str, core.Profile]]
    known: frozenset[str]
    solve_s: float
