"""PriorityClasses on the real API server: urgent jobs preempt at once, others at a round's end, and a budget holds.

A GPU type of its own on one fake node of 8 GPUs, so that one job fills it.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import synergy_devcluster
from support.extender.team import Team, ask
from support.extender.world import Replica
from support.operator.stage import running_operator
from support.waiting import eventually
from synergy_api.cluster.priority_classes import URGENT
from synergy_kube import KubeClient
from synergy_kube.resources import EVENTS, GPU_POOLS, PRIORITY_CLASSES, SCHEDULING_POLICIES, TENANTS, TRAINING_JOBS

pytestmark = pytest.mark.integration

Json = dict[str, Any]
SCARCE = "SCARCE"
NODE = "fake-v100-023"
CLASSES = {"prio-low": (100, {}), "prio-high": (500, {}), "prio-now": (900, {URGENT: "true"})}


class Ranked(Team):
    """Jobs that each want all GPUs of the scarce type."""

    async def wants_all(self, name: str, priority_class: str) -> None:
        """Submit a job."""
        await self.wants(name, 8, SCARCE, priorityClassName=priority_class)

    async def ended_by(self, name: str, rule: str) -> Json:
        """The newest preemption of the job, once it is by this rule."""

        async def told() -> Json | None:
            found = (await self.status(name)).get("preemptions") or [{}]
            return found[-1] if found[-1].get("rule") == rule else None

        return await eventually(told, seconds=60, what=f"{name} to be preempted by {rule}", every=0.1)


@pytest_asyncio.fixture(scope="module")
async def scarce(kube: KubeClient, extender: Replica) -> AsyncIterator[None]:
    """A pool of one node with a type of its own, and classes."""
    selector = {"kubernetes.io/hostname": NODE}
    await kube.create(
        GPU_POOLS, {"metadata": {"name": "scarce"}, "spec": {"nodeSelector": selector, "gpuType": SCARCE}}
    )
    for name, (value, labels) in CLASSES.items():
        await kube.create(PRIORITY_CLASSES, {"metadata": {"name": name, "labels": labels}, "value": value})
    yield
    for name in CLASSES:
        await kube.delete(PRIORITY_CLASSES, name)
    await kube.delete(GPU_POOLS, "scarce")


@pytest_asyncio.fixture(scope="module")
async def real_operator(
    devcluster: synergy_devcluster.Cluster, kube_scheduler: Path, scarce: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[None]:
    """The operator's process."""
    async with running_operator(devcluster.kubeconfig, tmp_path_factory.mktemp("operator")):
        yield


@pytest_asyncio.fixture
async def team(kube: KubeClient, namespace: str, real_operator: None) -> AsyncIterator[Ranked]:
    """A namespace of a Tenant that may use all of the classes. No run is protected by its cost."""
    spec = {"namespaces": [namespace], "caps": {"maxPriority": 1000}}
    await kube.create(TENANTS, {"metadata": {"name": namespace}, "spec": spec})
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"preemption": {"payback": 0}}})
    yield Ranked(kube, namespace)
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"preemption": None}})
    await kube.delete(TENANTS, namespace)


async def test_an_urgent_job_preempts_at_once_and_a_job_of_a_higher_class_waits_for_the_rounds_end(
    team: Ranked, rounds_of_an_hour: None, devcluster: synergy_devcluster.Cluster
) -> None:
    await team.wants_all("low", "prio-low")
    await team.runs("low")
    await team.wants_all("high", "prio-high")

    async def waits() -> Json | None:
        return (await team.status("high")).get("queue")

    await eventually(waits, seconds=30, what="high to wait", every=0.1)
    await team.wants_all("now", "prio-now")
    await team.runs("now")
    record = await team.ended_by("low", "Urgent")
    assert record["by"] == [f"{team.namespace}/now"]
    assert (await team.status("high")).get("allocation") is None

    async def events() -> list[str]:
        found = (await team.kube.list(EVENTS, team.namespace))["items"]
        return [one["message"] for one in found if one["reason"] == "Preempted"]

    (message,) = await eventually(events, seconds=30, what="the event", every=0.2)
    assert message == f"the plan ends run 1: {team.namespace}/now, whose class is urgent, gets the GPUs at once"
    assert "Preempted by Urgent" in await ask(devcluster, "history", "low", "-n", team.namespace)
    notes = json.loads(await ask(devcluster, "why", "low", "-n", team.namespace, "-o", "json"))["notes"]
    assert any("Preempted by Urgent: run 1" in note for note in notes)


async def test_a_higher_class_preempts_at_a_rounds_end_until_the_budget_is_spent(
    team: Ranked, kube: KubeClient, extender: Replica
) -> None:
    budget = {"preemption": {"payback": 0, "maxPerHour": 1}}
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": budget})
    await team.wants_all("low", "prio-low")
    await team.runs("low")
    await team.wants_all("high", "prio-high")
    await team.runs("high")
    record = await team.ended_by("low", "PriorityClass")
    assert record["by"] == [f"{team.namespace}/high"]

    await kube.delete(TRAINING_JOBS, "high", team.namespace)
    status = await team.runs("low")
    await team.wants_all("again", "prio-high")
    await team.wants_all("now", "prio-now")
    began = await team.planned_round()

    async def three_rounds_later() -> Json | None:
        return await team.status("low") if await team.planned_round() >= began + 3 else None

    status = await eventually(three_rounds_later, seconds=60, what="three rounds", every=0.2)
    assert (status["phase"], status["allocation"]["state"]) == ("Running", "Granted")
    assert len(status["preemptions"]) == 1
    for name in ("again", "now"):
        assert (await team.status(name))["queue"]["reason"]


async def test_an_unknown_class_and_one_above_the_cap_are_told(team: Ranked, kube: KubeClient) -> None:
    await team.wants_all("unknown", "prio-none")
    await team.wants_all("above", "system-cluster-critical")

    async def told(name: str, reason: str) -> str:
        async def so() -> str:
            conditions = (await team.status(name)).get("conditions") or []
            return next((one["message"] for one in conditions if one["reason"] == reason), "")

        return await eventually(so, seconds=40, what=f"{name} to be told {reason}", every=0.2)

    assert "spec.priorityClassName is prio-none" in await told("unknown", "PriorityClassUnknown")
    assert "counts as 1000, the cap of its tenant" in await told("above", "TenantCapped")
