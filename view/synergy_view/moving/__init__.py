"""From queues and jobs of other schedulers to Tenants and TrainingJobs, and what of them has no counterpart."""

from synergy_view.moving.translate import Translation, translate
from synergy_view.moving.words import UNTYPED, Choices, Remark

__all__ = ["UNTYPED", "Choices", "Remark", "Translation", "translate"]
