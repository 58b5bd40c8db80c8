"""From queues of other schedulers to Tenants: what they say in Tenants' words, and what has no counterpart."""

from synergy_view.moving.translate import Translation, translate
from synergy_view.moving.words import UNTYPED, Choices, Remark

__all__ = ["UNTYPED", "Choices", "Remark", "Translation", "translate"]
