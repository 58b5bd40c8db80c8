"""What a run's workers can be resized to, as far as it was learned from refusals."""

from typing import Annotated

from pydantic import Field

from synergy_api.amounts import DIMENSIONS, Amounts
from synergy_api.base import ApiModel, Timestamp

_Bound = Annotated[int | None, Field(ge=1)]


class SizeLimits(ApiModel):
    """Bounds, learned from what was refused, on CPU and memory of the whole job; the plan keeps within them.

    A gang has one size for each GPU: what one worker cannot have, or cannot give back, bounds all of them.
    """

    run: Annotated[int, Field(ge=1, description="The run that they hold for.")]
    min_cpu_millis: Annotated[_Bound, Field(description="Less CPU than this was refused.")] = None
    max_cpu_millis: Annotated[_Bound, Field(description="More CPU than this was refused.")] = None
    min_memory_bytes: Annotated[_Bound, Field(description="Less memory than this was refused.")] = None
    max_memory_bytes: Annotated[_Bound, Field(description="More memory than this was refused.")] = None
    until: Annotated[
        Timestamp | None, Field(description="When the plan may ask again; by default not within the run.")
    ] = None
    reason: Annotated[str, Field(description="What was refused, and why.")] = ""

    def clamp(self, amounts: Amounts, gpus: int) -> Amounts:
        """`amounts` for `amounts.gpus` of the job's `gpus` GPUs, within the bounds."""
        part = amounts.gpus
        kept = [_within(getattr(amounts, one.field), *self.bounds(one.field), part, gpus) for one in DIMENSIONS]
        return Amounts(part, *kept)

    def bounds(self, field: str) -> tuple[int | None, int | None]:
        """The least and the most of a dimension that the whole job can have; None where that is not known."""
        return getattr(self, f"min_{field}"), getattr(self, f"max_{field}")


def _within(amount: int, low: int | None, high: int | None, part: int, gpus: int) -> int:
    if low is not None:
        amount = max(amount, low * part // gpus)
    if high is not None:
        amount = min(amount, high * part // gpus)
    return max(1, amount)
