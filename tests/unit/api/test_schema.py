"""Structural schemas from models: what is written, and what is refused because the API server would refuse it."""

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, Field

from synergy_api.base import ApiModel, Quantity
from synergy_api.generation.schema import Defaults, SchemaError, structural_schema


class Inner(ApiModel):
    """An inner object.

    A second paragraph for readers of the code.
    """

    mode: Literal["A", "B"] = "A"
    note: str | None = None


class Outer(ApiModel):
    """An outer object."""

    small: Annotated[int, Field(ge=1, le=10)]
    large: Annotated[int, Field(ge=1)]
    maybe: Annotated[int | None, Field(ge=0, description="Perhaps.")] = None
    share: Annotated[float, Field(gt=0)] = 1.0
    amount: Quantity | None = None
    inner: Inner = Inner()
    optional: Inner | None = None
    labels: dict[str, str] = {}
    rows: list[list[float]] = []
    only: Literal["one"] = "one"


def _properties(**options: Defaults) -> dict[str, Any]:
    properties: dict[str, Any] = structural_schema(Outer, **options)["properties"]
    return properties


def test_no_reference_and_no_null_branch_is_left() -> None:
    text = repr(structural_schema(Outer))
    assert "$ref" not in text
    assert "'null'" not in text
    assert "title" not in text


def test_an_optional_field_has_the_type_and_bounds_of_its_value() -> None:
    assert _properties()["maybe"] == {"description": "Perhaps.", "type": "integer", "format": "int64", "minimum": 0}


def test_an_optional_field_is_not_required_and_has_no_null_default() -> None:
    schema = structural_schema(Outer)
    assert schema["required"] == ["small", "large"]
    assert "default" not in schema["properties"]["optional"]


@pytest.mark.parametrize(("field", "expected"), [("small", "int32"), ("large", "int64"), ("share", "double")])
def test_number_formats_follow_the_bounds(field: str, expected: str) -> None:
    assert _properties()[field]["format"] == expected


def test_a_strict_lower_bound_becomes_the_boolean_form_of_openapi_3_0() -> None:
    share = _properties()["share"]
    assert (share["minimum"], share["exclusiveMinimum"]) == (0, True)


def test_a_quantity_is_an_integer_or_a_string() -> None:
    amount = _properties()["amount"]
    assert amount["x-kubernetes-int-or-string"] is True
    assert amount["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert "type" not in amount


def test_an_object_default_is_given_in_full_without_nulls() -> None:
    assert _properties()["inner"]["default"] == {"mode": "A"}


def test_without_defaults_none_is_left_at_any_depth() -> None:
    assert "'default'" not in repr(structural_schema(Outer, defaults="none"))


def test_an_empty_default_is_not_stored_in_objects() -> None:
    empty = {name for name, field in _properties().items() if field.get("default") in ({}, [], "")}
    assert not empty
    assert "default" not in _properties()["labels"]


def test_defaults_of_values_alone_leave_out_those_of_whole_objects() -> None:
    properties = _properties(defaults="values")
    assert "default" not in properties["inner"]
    assert properties["inner"]["properties"]["mode"]["default"] == "A", "where the user writes the object"
    assert properties["share"]["default"] == 1.0


def test_lists_are_atomic_unless_they_say_otherwise() -> None:
    rows = _properties()["rows"]
    assert rows["x-kubernetes-list-type"] == rows["items"]["x-kubernetes-list-type"] == "atomic"


def test_a_single_literal_becomes_an_enum() -> None:
    assert _properties()["only"]["enum"] == ["one"]


def test_a_map_keeps_the_type_of_its_values() -> None:
    assert _properties()["labels"]["additionalProperties"] == {"type": "string"}


def test_only_the_first_paragraph_of_a_docstring_is_shown_to_users() -> None:
    assert _properties()["inner"]["description"] == "An inner object."


class _Union(ApiModel):
    value: int | list[int]


class _Open(ApiModel):
    value: dict[str, Any]


class _UntypedList(ApiModel):
    value: list[Any]


class _OtherDefault(ApiModel):
    value: Inner = Inner(mode="B")


class _Unknown(ApiModel):
    model_config = ConfigDict(json_schema_extra={"propertyNames": {"maxLength": 3}})
    value: int


@pytest.mark.parametrize(
    ("model", "field", "words"),
    [
        (_Union, "_Union.value", "one type"),
        (_Open, "_Open.value", "keep unknown fields"),
        (_UntypedList, r"_UntypedList.value\[\]", "one type"),
        (_OtherDefault, "_OtherDefault.value", "default must be that of its fields"),
        (_Unknown, "_Unknown", "propertyNames cannot stand"),
    ],
)
def test_what_a_structural_schema_cannot_say_is_an_error_that_names_the_field(
    model: type[ApiModel], field: str, words: str
) -> None:
    with pytest.raises(SchemaError, match=f"^{field}: .*{words}"):
        structural_schema(model)


@given(low=st.integers(-(2**40), 2**40), span=st.integers(0, 2**41))
def test_int32_is_claimed_only_where_every_allowed_value_fits(low: int, span: int) -> None:
    class Bounded(ApiModel):
        value: Annotated[int, Field(ge=low, le=low + span)]

    value = structural_schema(Bounded)["properties"]["value"]
    fits = low >= -(2**31) and low + span < 2**31
    assert (value["format"] == "int32") == fits
