"""A policy option is described once, and the command line and the SchedulingPolicy have it from there."""

import json
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated

import click
import pytest

from synergy_api.parts.policy_options import planner_values
from synergy_api.parts.queues import PackRules, Preemption, Queues
from synergy_api.resources.scheduling_policy import Autoscaling, Priorities, Profiling, SchedulingPolicySpec
from synergy_cli.errors import BadInputError
from synergy_cli.options.policy import config_of, parameter_of, policy_options
from synergy_cli.planning.plan import plan_command
from synergy_cli.simulation.compare import compare_command
from synergy_cli.simulation.simulate import simulate_command
from synergy_core.model.config import OPTIONS, PlanConfig
from synergy_core.model.config.policy_option import Flag, PolicyOption, SpecField, described, with_values
from synergy_simulator.engine.options import Options

ROOT = Path(__file__).parents[3]
DESCRIPTION = ROOT / "core/synergy_core/model/config"
GROUPS = {
    "autoscaling": Autoscaling,
    "queues": Queues,
    "placement": PackRules,
    "preemption": Preemption,
    "priorities": Priorities,
    "profiling": Profiling,
}


def test_every_field_of_the_planner_is_an_option_or_says_why_not() -> None:
    own = {option.path.partition(".")[0] for option in OPTIONS}
    assert {one.name for one in fields(PlanConfig)} - own == {"mode", "explain", "sharing_retry_s"}

    @dataclass
    class Forgetful:
        size: int = 1

    with pytest.raises(TypeError, match=r"Forgetful\.size: lacks a PolicyOption; add one, or a CallersOption"):
        described(Forgetful)


@pytest.mark.parametrize("one", OPTIONS, ids=lambda one: one.path)
def test_an_option_is_on_the_command_line_and_in_the_spec_or_says_why_not(one: object) -> None:
    option = next(found for found in OPTIONS if found is one)
    flag, spec = option.option.flag, option.option.spec
    assert flag is not None or spec is not None
    assert bool(option.option.unset) == (flag is None or spec is None)
    if flag is not None:
        commands = {"plan": plan_command, "simulate": simulate_command}
        for name, command in commands.items():
            assert (parameter_of(flag) in {one.name for one in command.params}) == (name in flag.commands)
    if spec is not None:
        group, _, name = spec.name.rpartition(".")
        assert name in (GROUPS[group] if group else SchedulingPolicySpec).model_fields


def test_flags_are_told_apart() -> None:
    parameters = [parameter_of(option.option.flag) for option in OPTIONS if option.option.flag is not None]
    assert len(set(parameters)) == len(parameters)


def test_there_is_no_second_list() -> None:
    """No other module of the programs names a flag's help or a field's description, and the simulator's options have
    none of the planner's fields."""
    texts = {
        text
        for option in OPTIONS
        for text in (getattr(option.option.flag, "help", ""), getattr(option.option.spec, "description", ""))
        if len(text) > 60
    }
    starts = {json.dumps(text[:40])[1:-1] for text in texts}
    rooms = [ROOT / room for room in ("api", "cli", "core", "extender", "simulator")]
    for source in (file for room in rooms for file in room.rglob("*.py") if file.parent != DESCRIPTION):
        assert not [start for start in starts if start in source.read_text("utf-8")], source
    assert not {one.name for one in fields(Options)} & {one.name for one in fields(PlanConfig)}


def test_a_spec_without_fields_is_the_planner_s_default() -> None:
    assert with_values(PlanConfig(), planner_values(SchedulingPolicySpec())) == PlanConfig()


def test_a_spec_is_read_in_the_planner_s_units() -> None:
    spec = SchedulingPolicySpec.model_validate(
        {
            "agnostic": True,
            "policy": "max-min-fairness",
            "placement": {"packLimitPercent": 30},
            "preemption": {"minimumRunSeconds": 60},
            "profiling": {"demandTolerancePercent": 7},
            "queues": {"thresholdsGPUSeconds": [5], "promoteKnob": 2},
        }
    )
    config = with_values(PlanConfig(), planner_values(spec))
    assert (config.aware, config.pack_limit, config.minimum_run_s, config.demand_tolerance) == (False, 0.3, 60.0, 0.07)
    assert (config.queues.thresholds_gpu_s, config.queues.promote_knob) == ((5.0,), 2.0)


def test_one_description_makes_a_new_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a new field of the planner needs beside its description: nothing, on the command line and in the spec."""

    @dataclass(frozen=True, kw_only=True)
    class Inner:
        patience_s: Annotated[
            float,
            PolicyOption(
                flag=Flag(name="--patience", help="Seconds.", least=0, seconds=True),
                spec=SpecField(name="preemption.patience_seconds", description="Seconds.", whole=True, at_least=0),
            ),
        ] = 30.0

    @dataclass(frozen=True, kw_only=True)
    class Planner:
        group: Inner = field(default_factory=Inner)

    options = described(Planner)
    monkeypatch.setattr("synergy_cli.options.policy.OPTIONS", options)
    monkeypatch.setattr("synergy_api.parts.policy_options.OPTIONS", options)
    command = click.command()(policy_options("plan")(lambda **_: None))
    (parameter,) = command.params
    assert (parameter.name, parameter.default) == ("patience", 30.0)
    assert config_of({"patience": 5.0}, Planner()) == Planner(group=Inner(patience_s=5.0))  # type: ignore[type-var]
    from synergy_api.parts.policy_options import with_options

    found = with_options("preemption")(Preemption).model_validate({"patienceSeconds": 12, "payback": 3})
    assert found.to_wire()["patienceSeconds"] == 12
    assert found.payback == 3.0


def test_an_error_of_the_planner_names_the_flag() -> None:
    given = {"queue_thresholds": "5,5", "promote_knob": None}
    with pytest.raises(BadInputError, match=re.escape("--queue-thresholds[1]: 5 is not above 5; sort the thresholds")):
        config_of(given, PlanConfig())


def test_compare_takes_the_options_of_simulate() -> None:
    own = {"policies", "mechanisms", "seeds", "policy", "mechanism", "per_job", "snapshots", "snapshot_at"}
    own |= {"processes", "dask", "keep"}
    names = [{one.name for one in command.params} - own for command in (simulate_command, compare_command)]
    assert names[0] == names[1]


def test_settings_of_a_simulation_are_the_simulator_s_or_the_planner_s() -> None:
    made = Options.of(policy="las", pack_limit=0.3, round_s=60.0)
    assert (made.plan.policy, made.plan.pack_limit, made.round_s) == ("las", 0.3, 60.0)
    with pytest.raises(ValueError, match="rounds: is not a setting of a simulation; did you mean 'round_s'"):
        Options.of(rounds=60.0)
