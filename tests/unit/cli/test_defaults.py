"""Planner, SchedulingPolicy, chart and command line have the same defaults."""

from pathlib import Path

import click
import yaml

from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_cli.planning.plan import plan_command
from synergy_cli.simulation.simulate import simulate_command
from synergy_core.model.config import PlanConfig
from synergy_extender.planning.policy import PolicyInForce, plan_config

CHART = Path(__file__).parents[3] / "helm" / "kube-synergy" / "values.yaml"


def _default(command: click.Command, name: str) -> object:
    return next(one.default for one in command.params if one.name == name)


def test_a_policy_without_fields_is_the_planner_s_default() -> None:
    assert plan_config(PolicyInForce(SchedulingPolicySpec()), "round") == PlanConfig()


def test_the_chart_changes_no_default() -> None:
    written = yaml.safe_load(CHART.read_text())["schedulingPolicy"]["spec"]
    assert SchedulingPolicySpec.model_validate(written) == SchedulingPolicySpec()


def test_the_command_line_plans_as_the_planner_does() -> None:
    planner = PlanConfig()
    for command in (plan_command, simulate_command):
        assert (_default(command, "policy"), _default(command, "mechanism")) == (planner.policy, planner.mechanism)
    assert _default(simulate_command, "minimum_run") == planner.minimum_run_s
    assert _default(simulate_command, "preemption_payback") == planner.preemption_payback
