"""The newest plan of this replica, as `GET /v1/plan` shows it."""

from dataclasses import dataclass

from synergy_core.model.config import Mode
from synergy_extender.planner.question import Planned


@dataclass(frozen=True)
class LastPlan:
    """A plan, its round and the time it was made."""

    planned: Planned
    mode: Mode
    round_index: int
    at: float
