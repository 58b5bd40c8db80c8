"""The description of a policy option: one for the planner, the command line and the SchedulingPolicy.

A field of `PlanConfig` carries its `PolicyOption` as metadata. The command line makes its flags from it, the resource
`SchedulingPolicy` its fields, and both turn what they read into a `PlanConfig` by `with_values`.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

Config = TypeVar("Config")

Command = Literal["plan", "simulate"]
"""Commands that take policy options; `compare` takes those of `simulate`."""
BOTH: Final[frozenset[Command]] = frozenset({"plan", "simulate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """How the command line takes an option."""

    name: str
    """With its dashes."""
    help: str
    """`{choices}` stands for the names of policies, mechanisms or modes."""
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    """Bounds of a number, both included."""
    seconds: bool = False
    """The number is a duration in seconds of at most a century."""
    commands: frozenset[Command] = BOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecField:
    """How a SchedulingPolicy's spec takes an option."""

    name: str
    """In the API's models, with the group before a dot: `placement.pack_limit_percent`."""
    description: str
    """For `kubectl explain`."""
    percent: bool = False
    """The spec has whole percents of what the planner takes as a fraction of 1."""
    whole: bool = False
    """The spec has integers only."""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOption:
    """A policy option that users set. `unset` says why the command line or the spec does not have it."""

    flag: Flag | None = None
    spec: SpecField | None = None
    negated: bool = False
    """Flag and field say the contrary of the planner's field."""
    unset: str = ""


@dataclass(frozen=True, slots=True)
class CallersOption:
    """A field that the calling program sets for itself and no user does. `reason` says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Described:
    """A field with its description."""

    path: str
    """In the configuration: `queues.promote_knob`."""
    type: Any
    default: Any
    option: PolicyOption


def described(config: type) -> tuple[Described, ...]:
    """The options of a configuration class and of the groups in it, in the order of their fields.

    Raises:
        TypeError: a field has neither a `PolicyOption` nor a `CallersOption`.
    """
    hints = get_type_hints(config, include_extras=True)
    found: list[Described] = []
    for one in fields(config):
        hint, default = hints[one.name], _default(one)
        metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        option = next((part for part in metadata if isinstance(part, PolicyOption | CallersOption)), None)
        if isinstance(option, PolicyOption):
            found.append(Described(one.name, get_args(hint)[0], default, option))
        elif is_dataclass(default) and not isinstance(default, type):
            found += (replace(part, path=f"{one.name}.{part.path}") for part in described(type(default)))
        elif option is None:
            raise TypeError(f"{config.__name__}.{one.name}: lacks a PolicyOption; add one, or a CallersOption")
    return tuple(found)


def _default(one: Field[Any]) -> Any:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return None if one.default is MISSING else one.default


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """A configuration with other values, by path. Raises FieldError where a value is out of range."""
    changes: dict[str, Any] = {path: value for path, value in values.items() if "." not in path}
    for group in sorted({path.partition(".")[0] for path in values if "." in path}):
        inner = {
            path.removeprefix(f"{group}."): value for path, value in values.items() if path.startswith(f"{group}.")
        }
        changes[group] = with_values(getattr(config, group), inner)
    return replace(config, **changes)  # type: ignore[type-var]
