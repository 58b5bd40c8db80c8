"""The configurations that the chart has for NVIDIA's device plugin."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from .conftest import Helm, Rendered

Render = Callable[..., Rendered]
NAME = "nvidia-device-plugin/kube-synergy-device-plugin"


def test_without_configurations_there_is_no_config_map(render: Render) -> None:
    assert ("ConfigMap", NAME) not in render()


def test_each_configuration_shares_by_mps_as_plans_need_it(render: Render) -> None:
    """The fields are those of api/config/v1 of NVIDIA's k8s-device-plugin."""
    objects = render(
        "devicePlugin.configs[0].name=a100,devicePlugin.configs[0].replicas=2",
        "devicePlugin.configs[1].name=t4,devicePlugin.configs[1].replicas=4",
        "devicePlugin.configs[1].preference=Distributed,devicePlugin.configs[1].rename=true",
    )
    data = objects["ConfigMap", NAME]["data"]
    found = {name: yaml.safe_load(text) for name, text in data.items()}
    assert found["default"] == {"version": "v1"}
    assert found["a100"] == {
        "version": "v1",
        "flags": {"migStrategy": "none", "plugin": {"sharedDevicesAllocationPolicy": "packed"}},
        "sharing": {
            "mps": {
                "renameByDefault": False,
                "failRequestsGreaterThanOne": False,
                "resources": [{"name": "nvidia.com/gpu", "replicas": 2}],
            }
        },
    }
    assert found["t4"]["flags"]["plugin"] == {"sharedDevicesAllocationPolicy": "distributed"}
    assert found["t4"]["sharing"]["mps"]["renameByDefault"] is True
    assert found.keys() == {"default", "a100", "t4"}


def test_name_and_namespace_are_the_plugins(render: Render) -> None:
    one = "devicePlugin.configs[0].name=a,devicePlugin.configs[0].replicas=2"
    assert ("ConfigMap", "gpu-operator/plugin") in render(
        one, "devicePlugin.namespace=gpu-operator,devicePlugin.name=plugin"
    )


def test_a_name_that_yaml_reads_as_something_else_stays_a_text(render: Render) -> None:
    objects = render("devicePlugin.configs[0].name=on-2,devicePlugin.configs[0].replicas=2", arguments=(
        "--set-string=devicePlugin.configs[1].name=100", "--set=devicePlugin.configs[1].replicas=2"))  # fmt: skip
    assert objects["ConfigMap", NAME]["data"].keys() == {"default", "on-2", "100"}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ("name=a,{}replicas=1", "devicePlugin.configs: a: replicas is 1, with which the plugin shares nothing"),
        (
            "name=a,{}replicas=2,{}migStrategy=mixed",
            "migStrategy is mixed, and the plugin shares no MIG devices",
        ),
        ("name=default,{}replicas=2", "devicePlugin.configs: default: the name is taken"),
        ("name=a,{}replicas=49", "devicePlugin"),
        ("name=a", "replicas"),
        ("name=A,{}replicas=2", "devicePlugin"),
        ("name=a,{}replicas=2,devicePlugin.name=A_b", "/devicePlugin/name"),
        ("name=a,{}replicas=2,{}preference=Any", "devicePlugin"),
    ],
)
def test_what_the_plugin_would_not_share_by_is_refused(helm: Helm, chart: Path, values: str, problem: str) -> None:
    prefix = "devicePlugin.configs[0]."
    result = helm("template", "any", str(chart), f"--set={prefix}{values.replace('{}', prefix)}")
    assert result.returncode != 0
    assert problem in result.stderr
