"""The policy options in a SchedulingPolicy's spec, as `synergy_core.model.config` describes them.

A class of the spec declares an option by name only where Python code reads the field by name. Everything else about it,
and every option that the class does not declare, comes from the description.
"""

from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, get_args

from pydantic import Field, create_model

from synergy_api.base import ApiModel
from synergy_core.model.config import OPTIONS
from synergy_core.model.config.policy_option import Described, SpecField

Model = TypeVar("Model", bound=ApiModel)

AS_DESCRIBED: Final[Any] = None
"""Marks the default of a declared option, which is the planner's."""


def with_options(group: str = "") -> Callable[[type[Model]], type[Model]]:
    """Of a class of the spec: give it the options of a group, `placement` for example; without, those of the spec."""

    def build(declared: type[Model]) -> type[Model]:
        definitions: dict[str, Any] = {}
        for one in OPTIONS:
            spec = one.option.spec
            if spec is not None and spec.name.rpartition(".")[0] == group:
                name = spec.name.rpartition(".")[2]
                definitions[name] = _definition(one, spec, declared.__annotations__.get(name))
        built: type[Model] = create_model(
            declared.__name__,
            __base__=declared,
            __module__=declared.__module__,
            __doc__=declared.__doc__,
            **definitions,
        )
        return built

    return build


def _definition(one: Described, spec: SpecField, declared: Any) -> tuple[Any, Any]:
    """Type and default of an option, as pydantic takes them."""
    numbers = {"ge": spec.at_least, "gt": spec.above, "le": spec.at_most}
    bounds: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    kind: Any = declared or _type(one, spec)
    described: Any = Field(description=spec.description, **bounds)
    return Annotated[kind, described], _from_planner(one, spec)


def _type(one: Described, spec: SpecField) -> Any:
    if not (spec.percent or spec.whole):
        return one.type
    optional = isinstance(one.type, UnionType) and type(None) in get_args(one.type)
    return int | None if optional else int


def _from_planner(one: Described, spec: SpecField) -> Any:
    """The planner's default in the spec's unit."""
    value = one.default
    if one.option.negated:
        return not value
    if value is None or isinstance(value, bool | str):
        return value
    if spec.percent:
        return round(value * 100)
    if isinstance(value, tuple):
        return list(value)
    return int(value) if spec.whole else value


def planner_values(spec: ApiModel) -> dict[str, Any]:
    """What a spec says, by path in `PlanConfig` and in the planner's units."""
    return {
        one.path: _to_planner(one, one.option.spec, _read(spec, one.option.spec.name))
        for one in OPTIONS
        if one.option.spec is not None
    }


def _read(spec: ApiModel, path: str) -> Any:
    found: Any = spec
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _to_planner(one: Described, spec: SpecField, value: Any) -> Any:
    if one.option.negated:
        return not value
    if spec.percent and value is not None:
        return value / 100
    if spec.whole and value is not None:
        return float(value)
    return tuple(value) if isinstance(value, list) else value
