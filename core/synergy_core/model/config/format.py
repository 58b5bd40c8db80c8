"""How a cluster is planned, as the optional `config` of a snapshot: an object with a key for each policy option.

A key is the option's path in `PlanConfig`, such as `policy` or `queues.promote_knob`. Options that are missing have
their defaults. `predictors`, which are no JSON, and what only a caller knows are left out.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from synergy_core.model.config import OPTIONS, PlanConfig
from synergy_core.model.config.policy_option import Described, with_values
from synergy_core.model.names import not_there
from synergy_core.model.snapshot import FieldError

OF_THE_SIMULATOR: Final = (
    "start_overhead_s",
    "preemption_overhead_s",
    "storage_bytes_per_s",
    "profiling_s",
    "fill",
)
"""Keys beside the planner's options, which only a simulation reads."""
_LEFT_OUT: Final = frozenset({"predictors"})
_TOLD: Final = {one.path: one for one in OPTIONS if one.path not in _LEFT_OUT}


def config_document(config: PlanConfig) -> dict[str, Any]:
    """The policy and the mechanism, and each option that differs from its default."""
    document: dict[str, Any] = {"policy": config.policy, "mechanism": config.mechanism}
    for path, one in _TOLD.items():
        value = _value(config, path)
        if path not in document and value != one.default:
            document[path] = list(value) if isinstance(value, tuple) else value
    return document


def config_of_document(document: Mapping[str, Any], base: PlanConfig) -> PlanConfig:
    """`base` with what the document says.

    Raises FieldError naming the key that is unknown or has a value that it cannot have.
    """
    unknown = sorted(document.keys() - _TOLD.keys())
    if unknown:
        raise FieldError(f"config.{unknown[0]}", not_there(unknown[0], sorted(_TOLD)))
    return with_values(base, {path: _checked(_TOLD[path], value) for path, value in document.items()})


def split_config(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A snapshot's `config` as the planner's part and the simulator's."""
    own = {name: value for name, value in config.items() if name in OF_THE_SIMULATOR}
    return {name: value for name, value in config.items() if name not in own}, own


def _value(config: PlanConfig, path: str) -> Any:
    value: Any = config
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _checked(one: Described, value: Any) -> Any:
    try:
        return TypeAdapter(one.type).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise FieldError(f"config.{one.path}", f"{problem[0].lower()}{problem[1:]}, is {value!r}") from None
