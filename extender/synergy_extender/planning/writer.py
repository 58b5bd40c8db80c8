"""Writes changes of status, in order, each only if what it rests on is still so."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from synergy_api.names import MANAGER_PLAN
from synergy_extender.cluster.views import JobView, Key, read_job
from synergy_extender.metrics import Metrics
from synergy_extender.planning.changes import Kind, StatusChange
from synergy_extender.planning.decide import stance
from synergy_kube import Conflict, KubeClient, NotFound
from synergy_kube.client import Object
from synergy_kube.resources import TRAINING_JOBS

_LOG = logging.getLogger(__name__)
_AT_ONCE = 16
_TRIES = 4


class LeadLostError(Exception):
    """This replica no longer leads: nothing more may be written."""


class StatusWriter:
    """Server-side applies of the plan's part of the status, guarded by the resource version.

    `observe` is told of each object as it stands after a write.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        leading: Callable[[], bool],
        observe: Callable[[Object], None],
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._leading = leading
        self._observe = observe
        self._metrics = metrics
        self._clock = clock

    async def write(self, changes: Sequence[StatusChange]) -> list[Key]:
        """Write all of one kind before the next. Returns the jobs whose change was dropped, because they no longer
        stand as the decision assumed.

        Raises LeadLostError, ApiError, aiohttp.ClientError or TimeoutError: then what follows is not written.
        """
        dropped: list[Key] = []
        for _, group in groupby(changes, key=lambda change: change.kind):
            slots = asyncio.Semaphore(_AT_ONCE)
            batch = list(group)
            done = await _all(self._write(change, slots) for change in batch)
            dropped += [change.job.key for change, written in zip(batch, done, strict=True) if not written]
        return dropped

    async def _write(self, change: StatusChange, slots: asyncio.Semaphore) -> bool:
        async with slots:
            kind = change.kind.name.lower()
            job: JobView | None = change.job
            for _ in range(_TRIES):
                if job is None or not self._same(job, change):
                    break
                if not self._leading():
                    raise LeadLostError
                try:
                    answer = await self._client.apply(
                        TRAINING_JOBS, job.key.name, body_of(job, change), job.key.namespace,
                        manager=MANAGER_PLAN, subresource="status",
                    )  # fmt: skip
                except (Conflict, NotFound):
                    job = await self._fresh(job.key)
                    continue
                self._observe(answer)
                self._metrics.status_writes.labels(kind, "written").inc()
                _log(change)
                return True
            self._metrics.status_writes.labels(kind, "dropped").inc()
            return False

    def _same(self, job: JobView, change: StatusChange) -> bool:
        """Whether the job still stands as the decision assumed; what others wrote of it meanwhile does not matter."""
        base, now = change.job, self._clock()
        same_part = (job.status.allocation, job.status.marks) == (base.status.allocation, base.status.marks)
        return job.uid == base.uid and same_part and stance(job, now) == stance(base, now)

    async def _fresh(self, key: Key) -> JobView | None:
        try:
            item = await self._client.get(TRAINING_JOBS, key.name, key.namespace)
        except NotFound:
            return None
        self._observe(item)
        try:
            return read_job(item)
        except ValueError:
            return None


def body_of(job: JobView, change: StatusChange) -> dict[str, Any]:
    """What is applied: the whole part of the status that the plan owns."""
    status: dict[str, Any] = {}
    if change.allocation is not None:
        status["allocation"] = change.allocation.to_wire()
    if change.queue is not None:
        status["queue"] = change.queue.to_wire()
    if change.late is not None:
        status["late"] = change.late.to_wire()
    if change.estimates is not None:
        status["estimates"] = [estimate.to_wire() for estimate in change.estimates]
    if change.marks is not None:
        status["marks"] = change.marks.to_wire()
    return {"metadata": {"uid": job.uid, "resourceVersion": job.resource_version}, "status": status}


def _log(change: StatusChange) -> None:
    if change.kind in (Kind.QUEUE, Kind.POSITION) or change.allocation is None:
        return
    allocation = change.allocation
    _LOG.log(
        logging.DEBUG if change.kind is Kind.STAY else logging.INFO,
        "%s run %d of %s",
        change.kind.name.lower(),
        allocation.run,
        change.job.key,
        extra={
            "job": str(change.job.key),
            "run": allocation.run,
            "state": allocation.state,
            "admitted": allocation.admitted,
            "round": allocation.round,
            "nodes": {share.node: share.gpus for share in allocation.workers},
            "reason": allocation.reason,
        },
    )


async def _all(calls: Iterable[Any]) -> list[bool]:
    """All results; the first error cancels the rest and is raised alone."""
    tasks: list[asyncio.Task[bool]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except* Exception as errors:  # noqa: BLE001 - raised again, without the group around it
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
