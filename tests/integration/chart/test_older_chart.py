"""An upgrade from an older chart: `chart-of-2026-11-21.tgz` is `helm/kube-synergy` as it was that day, without the
definitions, which Helm never changes. How an upgrade goes on a cluster is in `tests/e2e/test_chart.py`."""

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Rendered = dict[tuple[str, str], dict[str, Any]]

pytestmark = pytest.mark.timeout(1800)

ARCHIVE = Path(__file__).parent / "chart-of-2026-11-21.tgz"
FIXED = {
    "Deployment": [("spec", "selector")],
    "RoleBinding": [("roleRef",)],
    "ClusterRoleBinding": [("roleRef",)],
    "PriorityClass": [("value",), ("preemptionPolicy",)],
    "Service": [("spec", "clusterIP"), ("spec", "type")],
}
"""What the API server lets nobody change in an object that is there: the upgrade would stop half-way."""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The older chart's folder."""
    folder = tmp_path_factory.mktemp("older")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "kube-synergy"


@pytest.fixture(scope="module")
def before(older: Path, helm: Callable[..., Any]) -> Rendered:
    """What the older chart has made on a devcluster."""
    made = helm(
        "template", "anything", str(older), "--namespace=somewhere", f"--values={older / 'values-devcluster.yaml'}"
    )
    assert made.returncode == 0, made.stderr
    return {(item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all(made.stdout) if item}


@pytest.mark.parametrize("values", ["values.yaml", "values-devcluster.yaml", "values-kind.yaml"])
def test_values_set_for_the_older_chart_are_taken(older: Path, values: str, render: Callable[..., Rendered]) -> None:
    """As `--reset-then-reuse-values` does: what was set, over the new chart's own values."""
    assert render(arguments=(f"--values={older / values}",))


def test_nothing_that_is_there_changes_in_what_nobody_may_change(
    older: Path, before: Rendered, render: Callable[..., Rendered]
) -> None:
    after = render(arguments=(f"--values={older / 'values-devcluster.yaml'}",))
    seen = set()
    for (kind, name), old in before.items():
        for path in FIXED.get(kind, []):
            assert _at(after[kind, name], path) == _at(old, path), f"{kind} {name}"
            seen.add(kind)
    assert seen == FIXED.keys()


def test_what_workers_and_people_know_by_name_is_still_there(
    older: Path, before: Rendered, render: Callable[..., Rendered]
) -> None:
    """Running workers report to the Service and trust the authority in the Secrets; the policy and rights are used by
    people."""
    after = render(arguments=(f"--values={older / 'values-devcluster.yaml'}",))
    # the policy was a hook, so that it is no part of that release and stays
    assert before.keys() - after.keys() == {("SchedulingPolicy", "default")}
    assert before["SchedulingPolicy", "default"]["metadata"]["annotations"]["helm.sh/hook"] == "pre-install"
    secrets = [_secrets(objects) for objects in (before, after)]
    assert secrets[0].items() <= secrets[1].items()
    assert secrets[0]


def _at(item: dict[str, Any], path: tuple[str, ...]) -> Any:
    for name in path:
        item = (item or {}).get(name) or {}
    return item


def _secrets(objects: Rendered) -> dict[str, set[str]]:
    """The Secrets that each Deployment's pods read."""
    return {
        name: {volume["secret"]["secretName"] for volume in _at(item, ("spec", "template", "spec", "volumes"))
               if "secret" in volume}
        for (kind, name), item in objects.items()
        if kind == "Deployment"
    }  # fmt: skip
