"""What all the resources share: camelCase field names on the wire, closed models, conditions."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from synergy_api.quantity import QUANTITY_PATTERN, parse_quantity


def wire_name(field: str) -> str:
    """camelCase as Kubernetes writes it: `gpu_uuids` is `gpuUUIDs`, `price_per_hour` is `pricePerHour`."""
    wire = to_camel(field).replace("Uuids", "UUIDs").replace("GpuSeconds", "GPUSeconds")
    return wire.replace("PreemptedGpus", "PreemptedGPUs")


BY_GPU_TYPE: dict[str, JsonValue] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["gpuType"]}
"""The schema of a list with one item for each GPU type."""


class ApiModel(BaseModel):
    """A part of a custom resource. Unknown fields are refused, as the API server does under strict validation."""

    model_config = ConfigDict(alias_generator=wire_name, populate_by_name=True, extra="forbid", frozen=True)

    def to_wire(self) -> dict[str, Any]:
        """The JSON form: camelCase, without unset fields and without empty defaults.

        A reader gives a field that is absent its default, so an empty list, map or text says nothing more. Zero and
        false stay: printer columns show them.
        """
        wire = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        _drop_empty_defaults(self, wire)
        return wire


def _drop_empty_defaults(model: ApiModel, wire: dict[str, Any]) -> None:
    for name, field in type(model).model_fields.items():
        key, value = field.alias or name, getattr(model, name)
        if key not in wire:
            continue
        for inner, inner_wire in _models_in(value, wire[key]):
            _drop_empty_defaults(inner, inner_wire)
        if wire[key] in ("", [], {}) and value == field.default:
            del wire[key]


def _models_in(value: Any, wire: Any) -> Iterable[tuple[ApiModel, dict[str, Any]]]:
    """The models directly in a field's value, each with its JSON form."""
    if isinstance(value, ApiModel):
        return [(value, wire)]
    if isinstance(value, list) and value and isinstance(value[0], ApiModel):
        return zip(value, wire, strict=True)
    return ()


def _not_negative(amount: str | int) -> str | int:
    if parse_quantity(amount) < 0:
        raise ValueError(f"{amount!r} must not be negative")
    return amount


def _above_zero(amount: str | int) -> str | int:
    if parse_quantity(amount) <= 0:
        raise ValueError(f"{amount!r} must be above zero")
    return amount


_QUANTITY_SCHEMA: dict[str, JsonValue] = {
    "x-kubernetes-int-or-string": True,
    "minimum": 0,
    "pattern": QUANTITY_PATTERN,
    "maxLength": 32,
}


def short_exponents(*fields: str) -> str:
    """CEL: none of the fields has an exponent of three digits. The API server evaluates rules even where the pattern is
    violated, and a quantity such as 1e999999999 keeps it busy for minutes: put this before `quantity()`."""
    return " && ".join(f"!string({field}).matches('[eE][+-]?[0-9]{{3}}')" for field in fields)


_ABOVE_ZERO: list[JsonValue] = [
    {
        "rule": f"{short_exponents('self')} && quantity(string(self)).isGreaterThan(quantity('0'))",
        "message": "must be above zero, with an exponent of two digits at the most",
    }
]

Quantity = Annotated[str | int, AfterValidator(_not_negative), Field(json_schema_extra={**_QUANTITY_SCHEMA})]
"""A Kubernetes quantity such as 500m or 64Gi; zero is allowed."""

PositiveQuantity = Annotated[
    str | int,
    AfterValidator(_above_zero),
    Field(json_schema_extra={**_QUANTITY_SCHEMA, "x-kubernetes-validations": _ABOVE_ZERO}),
]
"""A Kubernetes quantity above zero."""

Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""RFC 3339 time in UTC."""


class Condition(ApiModel):
    """A condition as the Kubernetes API conventions define it."""

    type: Annotated[str, Field(max_length=316, description="Type of the condition, CamelCase.")]
    status: Annotated[Literal["True", "False", "Unknown"], Field(description="True, False or Unknown.")]
    reason: Annotated[str, Field(max_length=1024, description="One word, CamelCase, from a closed list.")]
    message: Annotated[str, Field(max_length=32768, description="What happened and what to change, in words.")] = ""
    last_transition_time: Annotated[Timestamp, Field(description="When the status last changed.")]
    observed_generation: Annotated[int | None, Field(ge=0, description="The spec generation this was set for.")] = None


Conditions = Annotated[
    list[Condition],
    Field(
        max_length=32,
        description="Conditions as the Kubernetes API conventions define them, one of each type.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]
