"""The manifest of a sweep on Dask: fields that Kubernetes has, restricted pods, arguments that the commands take."""

import re
from typing import Any

import click
import pytest
import yaml
from kubernetes import client

from support.job.example import EXAMPLES
from synergy_cli.simulation.compare import compare_command

FILE = EXAMPLES / "sweep/dask.yaml"
DOCUMENTS: list[dict[str, Any]] = list(yaml.safe_load_all(FILE.read_text()))
MODELS = {"Deployment": "V1Deployment", "Job": "V1Job", "NetworkPolicy": "V1NetworkPolicy", "Service": "V1Service"}
MODELS["PersistentVolumeClaim"] = "V1PersistentVolumeClaim"
PODS = [one["spec"]["template"] for one in DOCUMENTS if one["kind"] in ("Deployment", "Job")]


def unknown(value: Any, model: str, path: str) -> list[str]:
    """Fields that the API server's schema, from which these models are generated, does not have."""
    if inner := re.fullmatch(r"list\[(.*)\]", model):
        return [bad for index, one in enumerate(value) for bad in unknown(one, inner[1], f"{path}[{index}]")]
    if inner := re.fullmatch(r"dict\[str, (.*)\]", model):
        return [bad for key, one in value.items() for bad in unknown(one, inner[1], f"{path}.{key}")]
    known = getattr(client, model, None)
    if known is None or not hasattr(known, "attribute_map"):
        return []
    types = {name: known.openapi_types[attribute] for attribute, name in known.attribute_map.items()}
    wrong = [f"{path}.{key}" for key in value if key not in types]
    return wrong + [bad for key in value if key in types for bad in unknown(value[key], types[key], f"{path}.{key}")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_kubernetes_has_each_field(document: dict[str, Any]) -> None:
    assert unknown(document, MODELS[document["kind"]], document["kind"]) == []
    assert unknown({**document, "spec": {"replica": 1}}, MODELS[document["kind"]], "it") == ["it.spec.replica"]


@pytest.mark.parametrize("pod", PODS, ids=lambda pod: pod["metadata"]["labels"]["app.kubernetes.io/component"])
def test_pods_are_restricted(pod: dict[str, Any]) -> None:
    """What the API server's restricted pod security asks of a pod and of each container, and no rights besides."""
    spec = pod["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in spec["volumes"]}
    assert "memory" in container["resources"]["limits"]


def test_only_pods_of_the_sweep_reach_each_other() -> None:
    (policy,) = (one["spec"] for one in DOCUMENTS if one["kind"] == "NetworkPolicy")
    assert policy["ingress"] == [{"from": [{"podSelector": policy["podSelector"]}]}]
    for pod in PODS:
        assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_the_service_is_the_schedulers_and_all_use_its_address() -> None:
    (service,) = (one for one in DOCUMENTS if one["kind"] == "Service")
    scheduler, worker, job = PODS
    assert service["spec"]["selector"].items() <= scheduler["metadata"]["labels"].items()
    address = f"tcp://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert address in worker["spec"]["containers"][0]["command"]
    assert f"--dask={address}" in job["spec"]["containers"][0]["args"]


def test_the_commands_take_the_options() -> None:
    from distributed.cli.dask_scheduler import main as scheduler_command
    from distributed.cli.dask_worker import main as worker_command

    scheduler, worker, job = (pod["spec"]["containers"][0] for pod in PODS)
    name, *rest = job["args"]
    assert name == compare_command.name
    taken(compare_command, rest)
    for container, command in ((scheduler, scheduler_command), (worker, worker_command)):
        assert container["command"][0] == "dask"
        taken(command, container["command"][2:])


def taken(command: click.Command, arguments: list[str]) -> None:
    command.make_parser(click.Context(command)).parse_args(list(arguments))
