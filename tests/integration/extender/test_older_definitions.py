"""An older CustomResourceDefinition: planning goes on without the fields that it lacks, and says so."""

import logging
from pathlib import Path
from typing import Any

import pytest

from support.api_server.crds import without_fields
from support.extender.world import Operator, Replica
from support.waiting import eventually
from synergy_kube import KubeClient
from synergy_kube.resources import SCHEDULING_POLICIES

pytestmark = pytest.mark.integration

CRD = "trainingjobs.kube-synergy.dev"


def left_out(extender: Replica) -> float:
    registry = extender.extender.metrics.registry
    return registry.get_sample_value("kube_synergy_undeclared_fields", {"crd": CRD}) or 0.0


async def told(kube: KubeClient) -> dict[str, Any] | None:
    """The condition about the schemas, if it stands."""
    status = (await kube.get(SCHEDULING_POLICIES, "default")).get("status") or {}
    return next((item for item in status.get("conditions") or [] if item["type"] == "SchemasCurrent"), None)


async def test_jobs_start_under_an_older_definition_and_get_the_fields_after_its_upgrade(
    kube: KubeClient, repository: Path, extender: Replica, operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "synergy_kube.served_schema")
    gone = (("status", "marks"), ("status", "allocation", "round"), ("status", "summary"))
    async with without_fields(kube, repository, "trainingjobs", *gone):

        async def known() -> bool:
            return left_out(extender) == 3

        await eventually(known, seconds=40, what="the extender to see the older definition", every=0.1)
        await operator.submit("unlucky")
        allocation = await operator.allocation("unlucky", state="Granted")
        assert "round" not in allocation
        assert not {"marks", "summary"} & (await operator.job("unlucky"))["status"].keys()
        (line,) = {item.getMessage() for item in caplog.records if item.name == "synergy_kube.served_schema"}
        assert f"{CRD}: status.allocation.round, status.marks, status.summary" in line
        assert "kubectl apply --server-side" in line

        async def condition() -> dict[str, Any] | None:
            return await told(kube)

        stands = await eventually(condition, seconds=20, what="the condition")
        assert (stands["status"], stands["reason"]) == ("False", "OlderSchema")
        assert "status.marks" in stands["message"]

    async def upgraded() -> bool:
        return left_out(extender) == 0 and await told(kube) is None

    await eventually(upgraded, seconds=40, what="the extender to see the upgrade", every=0.1)
    await operator.submit("later")
    allocation = await operator.allocation("later", state="Granted")
    assert "round" in allocation
