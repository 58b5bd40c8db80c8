"""What the API server refuses to take of one job delays no other job, and is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from support.extender.world import TOLERATIONS, Operator, Replica
from support.waiting import eventually
from synergy_kube import ApiError, KubeClient, Resource
from synergy_kube.resources import EVENTS, TRAINING_JOBS

pytestmark = pytest.mark.integration
_POLICIES = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
_BINDINGS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)


@asynccontextmanager
async def refusing_places_of(kube: KubeClient, namespace: str, name: str) -> AsyncIterator[None]:
    """The API server refuses every status of the job that has an allocation, as a policy of the cluster would."""
    policy = f"refuse-{namespace}"
    rule = {"apiGroups": ["kube-synergy.dev"], "apiVersions": ["*"], "operations": ["UPDATE"]}
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["trainingjobs/status"]}]},
        "validations": [
            {
                "expression": f"object.metadata.namespace != '{namespace}' || object.metadata.name != '{name}' || "
                "!has(object.status.allocation)",
                "message": "no places for this one",
            }
        ],
    }
    await kube.create(_POLICIES, {"metadata": {"name": policy}, "spec": spec})
    bound = {"policyName": policy, "validationActions": ["Deny"]}
    await kube.create(_BINDINGS, {"metadata": {"name": policy}, "spec": bound})
    try:
        await _in_force(kube, namespace, name)
        yield
    finally:
        await kube.delete(_BINDINGS, policy)
        await kube.delete(_POLICIES, policy)


async def _in_force(kube: KubeClient, namespace: str, name: str) -> None:
    """A policy is heard of a moment after it was made."""
    body = {"status": {"allocation": {"run": 1, "state": "Granted"}}}

    async def refused() -> bool:
        try:
            await kube.merge_patch(TRAINING_JOBS, name, body, namespace, subresource="status")
        except ApiError as error:
            return "no places for this one" in error.message
        await kube.merge_patch(TRAINING_JOBS, name, {"status": {"allocation": None}}, namespace, subresource="status")
        return False

    await eventually(refused, seconds=20, what="the policy to be in force", every=0.1)


def count(replica: Replica, name: str, **labels: str) -> float:
    """A sample of the extender's metrics."""
    return replica.extender.metrics.registry.get_sample_value(f"kube_synergy_{name}", labels) or 0.0


async def told(operator: Operator, name: str, reason: str) -> dict[str, Any]:
    """The event of this reason about the job."""

    async def there() -> dict[str, Any] | None:
        selector = f"involvedObject.name={name},reason={reason}"
        items = (await operator.kube.list(EVENTS, operator.namespace, field_selector=selector))["items"]
        return items[0] if items else None

    return await eventually(there, seconds=20, what=f"event {reason} about {name}", every=0.1)


async def test_a_refused_write_is_the_jobs_own_and_the_others_start(
    operator: Operator, extender: Replica, kube: KubeClient
) -> None:
    await operator.submit("a-bad", status={"phase": "Pending"})
    async with refusing_places_of(kube, operator.namespace, "a-bad"):
        await operator.write("a-bad", phase="Queued")
        event = await told(operator, "a-bad", "StatusRefused")
        assert "no places for this one" in event["message"]
        rounds, plans = count(extender, "rounds_total"), count(extender, "plan_seconds_count", mode="round")
        for index in range(4):
            await operator.submit(f"good-{index}")
        for index in range(4):
            await operator.allocation(f"good-{index}", state="Granted", admitted=True)
        assert (await operator.queue("a-bad"))["reason"] == "StatusRefused"
        await asyncio.sleep(6.0)  # rounds of 5 s: what is counted is over such a stretch
        assert count(extender, "rounds_total") - rounds >= 1
        assert count(extender, "plan_seconds_count", mode="round") - plans <= 4
        assert count(extender, "unwritten_jobs") == 1
        refused = count(extender, "refused_writes_total", code="422")
        assert 1 <= refused <= 6
    granted = await operator.allocation("a-bad", state="Granted", admitted=True)
    assert granted["run"] == 1
    assert count(extender, "unwritten_jobs") == 0


async def fill(operator: Operator, name: str, most: int) -> None:
    """Let the object grow by up to `most` bytes, until the API server takes hardly any more, and end its suspension."""

    def filled(size: int, **more: Any) -> dict[str, Any]:
        return {"metadata": {"annotations": {"example.com/filler": "x" * size}}, **more}

    taken = 0
    while most - taken > 1:
        size = (taken + most) // 2
        try:
            await operator.kube.merge_patch(TRAINING_JOBS, name, filled(size), operator.namespace)
        except ApiError as error:
            if "too large" not in error.message:
                raise
            most = size
        else:
            taken = size
    goes = filled(taken - 200, spec={"suspend": None})
    await operator.kube.merge_patch(TRAINING_JOBS, name, goes, operator.namespace)


async def test_a_job_whose_object_is_full_delays_nobody(operator: Operator, extender: Replica) -> None:
    template = {
        "metadata": {"annotations": {"example.com/ballast": "x" * 1_530_000}},
        "spec": {"containers": [{"name": "train", "image": "fake", "command": ["train"]}], "tolerations": TOLERATIONS},
    }
    body = {"metadata": {"name": "a-large"}, "spec": {"gpus": 1, "steps": 1000, "suspend": True, "template": template}}
    await operator.kube.create(TRAINING_JOBS, body, operator.namespace)
    await operator.write("a-large", phase="Queued")
    await fill(operator, "a-large", 60_000)
    await operator.submit("small")
    await operator.allocation("small", state="Granted", admitted=True)
    event = await told(operator, "a-large", "StatusRefused")
    assert "too large" in event["message"]
    assert count(extender, "refused_writes_total", code="500") >= 1
