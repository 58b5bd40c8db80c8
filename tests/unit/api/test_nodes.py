"""Which nodes a pod spec admits: selector, affinity, taints."""

from typing import Any

import pytest

from synergy_api.cluster.nodes import pod_spec_admits

NODE = {
    "metadata": {"name": "n1", "labels": {"zone": "a", "gpus": "8"}},
    "spec": {
        "taints": [
            {"key": "team", "value": "ml", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        ]
    },
}
TOLERANT = {"tolerations": [{"key": "team", "operator": "Exists"}]}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {**TOLERANT, "affinity": {"nodeAffinity": required}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("spec", "admits"),
    [
        (TOLERANT, True),
        ({}, False),
        ({**TOLERANT, "nodeSelector": {"zone": "a"}}, True),
        ({**TOLERANT, "nodeSelector": {"zone": "b"}}, False),
        (affinity(expression("zone", "In", "a", "b")), True),
        (affinity(expression("zone", "NotIn", "a")), False),
        (affinity(expression("absent", "NotIn", "a")), True),
        (affinity(expression("zone", "Exists")), True),
        (affinity(expression("zone", "DoesNotExist")), False),
        (affinity(expression("gpus", "Gt", "4")), True),
        (affinity(expression("gpus", "Lt", "8")), False),
        (affinity(expression("zone", "Gt", "4")), False),
        (affinity(expression("zone", "Resembles", "a")), False),
        (affinity(expression("zone", "In", "b"), expression("gpus", "In", "8")), True),
        (affinity({}), False),
        (affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}), True),
        (affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}), False),
    ],
)
def test_a_spec_admits_the_nodes_that_the_kube_scheduler_would(spec: dict[str, Any], admits: bool) -> None:
    assert pod_spec_admits(spec, NODE) is admits


def test_tolerations_that_every_worker_gets_count_too() -> None:
    assert pod_spec_admits({}, NODE, [{"key": "team", "value": "ml"}])
