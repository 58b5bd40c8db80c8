"""The policy options on the command line, made from their descriptions in `synergy_core.model.config`."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal, get_args, get_origin

import click
from click.core import ParameterSource

from synergy_cli.choice import Choice
from synergy_cli.errors import BadInputError
from synergy_cli.numbers import Seconds, Within
from synergy_cli.options.queues import services_of, thresholds_of, thresholds_text
from synergy_cli.options.sharing import MODES, mode_of, predictors_of
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.config import OPTIONS, PlanConfig
from synergy_core.model.config.policy_option import Command, Described, Flag, with_values
from synergy_core.model.snapshot import FieldError
from synergy_core.policies import BUILT_IN, POLICIES

_CHOICES: Final[Mapping[str, Collection[str]]] = {
    "policy": sorted(POLICIES),
    "mechanism": sorted(MECHANISMS),
    "colocation": MODES,
}
_KINDS: Final[Mapping[str, dict[str, Any]]] = {
    "colocation": {"default": PlanConfig().colocation, "show_default": True},
    "predictors": {"multiple": True},
    "queues.service_gpu_s": {},
    "queues.thresholds_gpu_s": {"default": thresholds_text(PlanConfig().queues.thresholds_gpu_s), "show_default": True},
}
"""How click reads options that are no numbers, switches or choices; `_READERS` and `config_of` read it."""
_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "colocation": mode_of,
    "queues.service_gpu_s": services_of,
    "queues.thresholds_gpu_s": thresholds_of,
}


def policy_options(
    command: Command, *, without: Collection[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The policy options of a command, less those of the paths in `without`; `config_of` reads them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for one in reversed(OPTIONS):
            flag = one.option.flag
            if flag is not None and command in flag.commands and one.path not in without:
                function = _click_option(one, flag)(function)
        return function

    return decorate


def _click_option(one: Described, flag: Flag) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    names = ", ".join(_CHOICES.get(one.path, ()))
    text = flag.help.replace("{choices}", names)
    return click.option(flag.name, parameter_of(flag), help=text, metavar=flag.metavar, **_kind(one, flag))


def parameter_of(flag: Flag) -> str:
    """The name under which a command gets what the flag says."""
    return flag.name.removeprefix("--").replace("-", "_")


def _kind(one: Described, flag: Flag) -> dict[str, Any]:
    """How click takes an option: by its special kind, else by the type of the planner's field."""
    if one.path in _KINDS:
        return _KINDS[one.path]
    if one.type is bool:
        return {"is_flag": True}
    kind: dict[str, Any] = {} if one.default is None else {"default": one.default, "show_default": True}
    if get_origin(one.type) is Literal:
        return {**kind, "type": Choice(get_args(one.type))}
    if one.type is str:
        return kind
    if flag.seconds:
        return {**kind, "type": Seconds(min=flag.least, max=flag.most)}
    bounded = flag.least is not None or flag.most is not None
    return {**kind, "type": Within(min=flag.least, max=flag.most) if bounded else float}


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a command's values that were given on its command line: all others give way to a snapshot's config."""
    source = click.get_current_context().get_parameter_source
    return {name: value for name, value in values.items() if source(name) is ParameterSource.COMMANDLINE}


def config_of(given: Mapping[str, Any], base: PlanConfig) -> PlanConfig:
    """What was given, by parameter, as a configuration; what was not is as in `base`.

    Raises:
        BadInputError: one line that names the option, or the file and line.
    """
    flags = {one.path: one.option.flag for one in OPTIONS if one.option.flag is not None}
    values = {
        one.path: _read(one, given[parameter_of(flag)])
        for one in OPTIONS
        if (flag := flags.get(one.path)) is not None and parameter_of(flag) in given
    }
    if values.get("queues.promote_knob") is not None and not values.get(
        "queues.thresholds_gpu_s", base.queues.thresholds_gpu_s
    ):
        raise BadInputError(
            "--promote-knob: without queues no job is promoted; leave it out or give --queue-thresholds"
        )
    if "predictors" in values:
        values["predictors"] = predictors_of(values["predictors"], values.get("colocation", base.colocation))
    try:
        return with_values(base, values)
    except FieldError as error:
        field, bracket, index = error.path.partition("[")
        name = next(flag.name for path, flag in flags.items() if path.rpartition(".")[2] == field)
        raise BadInputError(f"{name}{bracket}{index}: {error.problem}") from error


def own_policy(option: str, name: str) -> None:
    """Make a policy of the user's own known: an entry point, or `module:function`.

    Raises:
        BadInputError: there is no such policy; one line that names the option.
    """
    if name in BUILT_IN:
        return
    try:
        from synergy_simulator.own_policies import PolicyError, known_policy  # noqa: PLC0415  few runs need it
    except ModuleNotFoundError:  # without the simulator's libraries; the planner says that there is no such policy
        return
    try:
        known_policy(name)
    except PolicyError as error:
        raise BadInputError(f"{option}: {error.problem}") from error


def _read(one: Described, value: Any) -> Any:
    if one.option.negated:
        return not value
    return _READERS[one.path](value) if one.path in _READERS else value
