"""Bounds on the CPU and memory of a job: those of its spec, and those learned from refused resizes."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from synergy_api.amounts import DIMENSIONS, Amounts
from synergy_api.base import ApiModel, PositiveQuantity, Timestamp, short_exponents, wire_name

_Bound = Annotated[int | None, Field(ge=1)]


class ResourceBounds(ApiModel):
    """CPU and memory of the whole job, all its workers together."""

    cpu: Annotated[PositiveQuantity | None, Field(description="CPU of the whole job, such as 500m or 8.")] = None
    memory: Annotated[PositiveQuantity | None, Field(description="Memory of the whole job, such as 64Gi.")] = None


_RANGE_RULES: list[Any] = [
    {
        "rule": f"!has(self.min) || !has(self.max) || !has(self.min.{name}) || !has(self.max.{name}) || "
        f"{short_exponents(f'self.min.{name}', f'self.max.{name}')} && "
        f"quantity(string(self.min.{name})).compareTo(quantity(string(self.max.{name}))) <= 0",
        "message": f"min.{name} must not be above max.{name}",
        "fieldPath": f".min.{name}",
    }
    for name in (wire_name(one.spec_field) for one in DIMENSIONS)
]


class ResourceRange(ApiModel):
    """Bounds on what the plan may give the job beside its GPUs."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _RANGE_RULES})

    min: Annotated[ResourceBounds, Field(description="The plan gives at least this.")] = ResourceBounds()
    max: Annotated[ResourceBounds, Field(description="The plan and the profile runs use at most this.")] = (
        ResourceBounds()
    )


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
