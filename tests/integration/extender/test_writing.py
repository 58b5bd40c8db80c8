"""Writes of status rest on what the decision was made from."""

import asyncio
import json
import subprocess
import time
from contextlib import suppress
from typing import Any

import pytest

import synergy_devcluster
from support.extender.leads import Leads
from support.extender.world import Operator
from support.waiting import eventually
from synergy_api.names import MANAGER_PROGRESS
from synergy_api.parts.allocation import Allocation
from synergy_api.parts.progress import Progress
from synergy_extender.cluster.views import JobView, read_job
from synergy_extender.decisions.allocations import release
from synergy_extender.decisions.changes import ChangeKind, StatusChange
from synergy_extender.leases.progress_writer import ProgressWriter
from synergy_extender.metrics import Metrics
from synergy_extender.writing.unwritten import Unwritten
from synergy_extender.writing.writer import LeadLostError, StatusWriter
from synergy_kube import Conflict, NotFound
from synergy_kube.resources import NAMESPACES, TRAINING_JOBS

pytestmark = pytest.mark.integration

PENDING = {"phase": "Pending"}
"""No leader touches such a job: these tests write alone."""
RELEASED = release(Allocation(run=1, state="Granted"))


class Desk:
    """A writer, what it saw, and whether it leads."""

    def __init__(self, operator: Operator) -> None:
        self.seen: list[Any] = []
        self.vanished: list[str] = []
        self.lead = Leads()
        self.unwritten = Unwritten(time.monotonic)
        self.metrics = Metrics()
        self.writer = StatusWriter(
            operator.kube,
            lead=self.lead,
            observe=self.see,
            vanished=lambda job: self.vanished.append(job.key.name),
            metrics=self.metrics,
            unwritten=self.unwritten,
            clock=time.time,
        )

    def see(self, item: Any, *, decided: bool = False) -> None:
        """What a write leaves is told as decided, a fresh look is not."""
        self.seen.append(item)

    def count(self, outcome: str) -> float:
        return (
            self.metrics.registry.get_sample_value(
                "kube_synergy_status_writes_total", {"kind": "leave", "outcome": outcome}
            )
            or 0.0
        )


def change(job: JobView) -> StatusChange:
    return StatusChange(job, ChangeKind.LEAVE, RELEASED, None)


async def view(operator: Operator, name: str) -> JobView:
    return read_job(await operator.job(name))


async def test_a_change_is_written_and_seen(operator: Operator) -> None:
    await operator.submit("plain", status=PENDING)
    desk = Desk(operator)
    assert await desk.writer.write([change(await view(operator, "plain"))]) == []
    assert (await operator.job("plain"))["status"]["allocation"] == RELEASED.to_wire()
    assert [read_job(item).status.allocation for item in desk.seen] == [RELEASED]


async def test_what_others_wrote_meanwhile_does_not_stop_it_when_the_job_stands_as_it_did(operator: Operator) -> None:
    await operator.submit("reporting", status=PENDING)
    before = await view(operator, "reporting")
    progress = {"status": {"progress": {"run": 1, "steps": 7}}}
    await operator.kube.apply(
        TRAINING_JOBS, "reporting", progress, operator.namespace, manager=MANAGER_PROGRESS, subresource="status"
    )
    assert await Desk(operator).writer.write([change(before)]) == []
    status = (await operator.job("reporting"))["status"]
    assert (status["allocation"]["state"], status["progress"]["steps"]) == ("Released", 7)


async def test_a_change_for_a_job_that_stands_otherwise_by_now_is_dropped(operator: Operator) -> None:
    for name in ("suspended", "granted", "gone", "replaced"):
        await operator.submit(name, status=PENDING)
    before = {name: await view(operator, name) for name in ("suspended", "granted", "gone", "replaced")}
    suspend = {"spec": {"suspend": True}}
    await operator.kube.merge_patch(TRAINING_JOBS, "suspended", suspend, operator.namespace)
    other = Desk(operator)
    held = Allocation(run=1, state="Granted")
    await other.writer.write([StatusChange(before["granted"], ChangeKind.ENTER, held, None)])
    await operator.kube.delete(TRAINING_JOBS, "gone", operator.namespace)
    await operator.kube.delete(TRAINING_JOBS, "replaced", operator.namespace)
    await operator.submit("replaced", status=PENDING)
    desk = Desk(operator)
    dropped = await desk.writer.write([change(job) for job in before.values()])
    assert sorted(key.name for key in dropped) == sorted(before)
    assert (desk.count("dropped"), desk.count("written")) == (4, 0)
    assert desk.vanished == ["gone"], "another one has the name of the replaced job"
    assert (await operator.job("granted"))["status"]["allocation"]["state"] == "Granted"
    assert "allocation" not in (await operator.job("replaced"))["status"]


async def test_one_that_no_longer_leads_writes_nothing(operator: Operator) -> None:
    await operator.submit("plain", status=PENDING)
    desk = Desk(operator)
    desk.lead.leading = False
    with pytest.raises(LeadLostError):
        await desk.writer.write([change(await view(operator, "plain"))])
    assert "allocation" not in (await operator.job("plain"))["status"]


async def test_progress_is_refused_after_somebody_elses_write_and_a_job_that_is_gone_has_none(
    operator: Operator,
) -> None:
    await operator.submit("job", status=PENDING)
    before = await view(operator, "job")
    seen: list[Any] = []
    writer = ProgressWriter(operator.kube, seen.append)
    await writer.apply(before, Progress(run=1, steps=5))
    with pytest.raises(Conflict):
        await writer.apply(before, Progress(run=1, steps=4))
    assert [read_job(item).status.progress for item in seen] == [Progress(run=1, steps=5)]
    assert seen[0]["status"]["summary"] == {"progress": "5/1000"}, "in the same write"
    await operator.kube.delete(TRAINING_JOBS, "job", operator.namespace)
    await writer.apply(before, Progress(run=1, steps=6))
    assert len(seen) == 1


async def test_a_job_whose_namespace_is_gone_has_no_part_in_plans(
    operator: Operator, devcluster: synergy_devcluster.Cluster
) -> None:
    orphans = Operator(operator.kube, f"{operator.namespace}-gone")
    await orphans.kube.create(NAMESPACES, {"metadata": {"name": orphans.namespace}})
    await orphans.submit("orphan", status=PENDING)
    before = await view(orphans, "orphan")
    released = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": orphans.namespace}, "spec": {}}
    raw = ("replace", "--raw", f"/api/v1/namespaces/{orphans.namespace}/finalize", "-f", "-")
    kubectl = [str(devcluster.program("kubectl")), "--kubeconfig", str(devcluster.kubeconfig), *raw]
    await asyncio.to_thread(
        subprocess.run, kubectl, input=json.dumps(released), text=True, check=True, capture_output=True
    )

    async def refuses() -> bool:
        with suppress(NotFound):  # the first deletion marks it only
            await orphans.kube.delete(NAMESPACES, orphans.namespace)
        try:
            await orphans.kube.merge_patch(TRAINING_JOBS, "orphan", {"metadata": {"labels": {}}}, orphans.namespace)
        except NotFound as error:
            # by these words the operator tells it from a job that is gone
            return error.message == f'namespaces "{orphans.namespace}" not found'
        return False

    await eventually(refuses, seconds=30, what="the API server to have seen that the namespace is gone")
    desk = Desk(orphans)
    try:
        assert await desk.writer.write([change(before)]) == []
        assert (desk.vanished, list(desk.unwritten.out_of_plans())) == ([], [before.key])
        assert "allocation" not in (await orphans.job("orphan"))["status"]
    finally:
        await orphans.kube.delete(TRAINING_JOBS, "orphan", orphans.namespace)
