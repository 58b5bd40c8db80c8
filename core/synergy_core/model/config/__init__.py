"""How to plan: the planner's input beside the snapshot. Each field carries its policy option; `format` is the JSON
form."""

from synergy_core.model.config.plan_config import (
    OPTIONS,
    THESIS_MODES,
    ColocationMode,
    EstimateMode,
    Mode,
    PlanConfig,
)
from synergy_core.model.config.priority_queues import PriorityQueues

__all__ = [
    "OPTIONS",
    "THESIS_MODES",
    "ColocationMode",
    "EstimateMode",
    "Mode",
    "PlanConfig",
    "PriorityQueues",
]
