"""The chart as the real helm renders it."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import synergy_devcluster
from synergy_devcluster.programs.versions import pinned

CHART = Path(__file__).parents[3] / "helm" / "kube-synergy"
NAMESPACE = "somewhere"

Rendered = dict[tuple[str, str], dict[str, Any]]
Helm = Callable[..., "subprocess.CompletedProcess[str]"]


def _name(item: dict[str, Any]) -> str:
    """The object's name; with its namespace where that is not the release's."""
    namespace = item["metadata"].get("namespace", NAMESPACE)
    name: str = item["metadata"]["name"]
    return name if namespace == NAMESPACE else f"{namespace}/{name}"


@pytest.fixture(scope="session")
def chart() -> Path:
    """The chart's folder."""
    return CHART


@pytest.fixture(scope="session")
def helm() -> Helm:
    """Runs `helm COMMAND ...` for the Kubernetes version that the project is tested on."""
    program = synergy_devcluster.programs(print)["helm"]

    def run(command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        version = f"--kube-version={pinned().kubernetes}"
        return subprocess.run([program, command, *arguments, version], capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="session")
def render(helm: Helm, chart: Path) -> Callable[..., Rendered]:
    """Renders the chart with `--set` values; objects by kind and name."""

    def rendered(*values: str, release: str = "anything", arguments: tuple[str, ...] = ()) -> Rendered:
        sets = [f"--set={value}" for value in values]
        result = helm("template", release, str(chart), f"--namespace={NAMESPACE}", *sets, *arguments)
        assert result.returncode == 0, result.stderr
        objects = [item for item in yaml.safe_load_all(result.stdout) if item]
        by_name = {(item["kind"], _name(item)): item for item in objects}
        assert len(by_name) == len(objects)
        return by_name

    return rendered


@pytest.fixture(scope="session")
def objects(render: Callable[..., Rendered]) -> Rendered:
    """The chart with its default values."""
    return render()
