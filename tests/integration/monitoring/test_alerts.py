"""The chart's alerts and dashboards: alerts fire, clear and have runbooks; queries ask for metrics that exist."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.on_cluster.prometheus import ROOT, RULES, expressions, program, rules
from synergy_dashboard.metrics import Metrics as DashboardMetrics
from synergy_extender.metrics import Metrics as ExtenderMetrics
from synergy_operator.edge.metrics import Metrics as OperatorMetrics

TESTS = Path(__file__).parent / "alerts_test.yaml"


def alerts() -> list[dict[str, Any]]:
    return [rule for group in rules()["groups"] for rule in group["rules"]]


def test_rules_are_valid_with_their_templates() -> None:
    run = subprocess.run(
        [program("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_each_alert_fires_and_clears(tmp_path: Path) -> None:
    bare = rules()
    for group in bare["groups"]:
        for rule in group["rules"]:
            del rule["annotations"]  # the tests name labels alone
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(bare))
    (tmp_path / "tests.yaml").write_text(TESTS.read_text())
    run = subprocess.run(
        [program("promtool"), "test", "rules", "tests.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    steps = [step for test in yaml.safe_load(TESTS.read_text())["tests"] for step in test["alert_rule_test"]]
    for alert in alerts():
        expected = {bool(step.get("exp_alerts")) for step in steps if step["alertname"] == alert["alert"]}
        assert expected == {True, False}, f"{alert['alert']} fires and clears"


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_says_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    assert alert["annotations"].keys() == {"summary", "description"}
    runbooks = re.findall(r"^### (\S+)$", (ROOT / "docs" / "alerts.md").read_text(), re.MULTILINE)
    assert runbooks.count(alert["alert"]) == 1


def test_there_is_no_runbook_without_an_alert() -> None:
    runbooks = re.findall(r"^### (\S+)$", (ROOT / "docs" / "alerts.md").read_text(), re.MULTILINE)
    assert set(runbooks) == {alert["alert"] for alert in alerts()}


def test_queries_ask_for_metrics_that_there_are() -> None:
    known: set[str] = set()
    for registry in (ExtenderMetrics().registry, OperatorMetrics().registry, DashboardMetrics().registry):
        for family in (family for collector in registry._collector_to_names for family in collector.describe()):
            suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
            known |= {family.name + suffix for suffix in suffixes}
    queries = [expr for each in expressions().values() for expr in each] + [alert["expr"] for alert in alerts()]
    asked = {name for expr in queries for name in re.findall(r"kube_synergy_\w+", expr)}
    assert asked <= known, asked - known
    assert len(asked) > 30


def test_dashboards_are_what_their_code_makes() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "monitoring", "--check"], cwd=ROOT / "helm", capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
