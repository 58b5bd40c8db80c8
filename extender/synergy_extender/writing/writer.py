"""Writes changes of status, in order, each only if what it rests on is still so."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from itertools import groupby
from typing import Any, Protocol

from synergy_api.names import MANAGER_PLAN
from synergy_api.parts.waiting import PreemptionRecord
from synergy_api.reasons import ENTRIES, Finding, Reason, say
from synergy_api.timestamps import format_time
from synergy_extender.cluster.views import JobView, Key, read_job
from synergy_extender.decisions.changes import ChangeKind, StatusChange
from synergy_extender.decisions.plan_result import stance
from synergy_extender.leader import Lead
from synergy_extender.metrics import Metrics
from synergy_extender.writing.counts import count_change
from synergy_extender.writing.some_at_once import some_at_once
from synergy_extender.writing.unwritten import Unwritten, is_busy
from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.answers import Object
from synergy_kube.events import Subject, post_event
from synergy_kube.resources import TRAINING_JOBS
from synergy_service.tracing import span

_LOG = logging.getLogger(__name__)
_AT_ONCE = 16
_TRIES = 4
_PATIENCE_S = 3.0
"""How long after its start a pass may still wait for a busy API server: the next one must not wait long."""
_PAUSE_S = 0.5
_UNAUTHORIZED = 401
_ONLY_TOLD = (ChangeKind.QUEUE, ChangeKind.POSITION, ChangeKind.ESTIMATE)


class Observe(Protocol):
    """Takes a TrainingJob as the API server answered; `decided`: with what was decided here."""

    def __call__(self, item: Object, *, decided: bool = False) -> None:
        """Take it."""


class LeadLostError(Exception):
    """This replica no longer leads: nothing more may be written."""


class _Outcome(Enum):
    WRITTEN = auto()
    DROPPED = auto()
    """The job is no longer in the state that the decision assumed."""
    REFUSED = auto()
    """The API server does not take it."""


class StatusWriter:
    """Server-side applies of the plan's part of the status, guarded by the resource version.

    `observe` gets each object as it is after a write, `vanished` each job that is there no more; `unwritten` keeps the
    jobs whose writes were refused. `clock` gives Unix time.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        lead: Lead,
        observe: Observe,
        vanished: Callable[[JobView], None],
        metrics: Metrics,
        unwritten: Unwritten,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._lead = lead
        self._observe = observe
        self._vanished = vanished
        self._metrics = metrics
        self._unwritten = unwritten
        self._clock = clock
        self._patient_until = 0.0

    async def write(self, changes: Sequence[StatusChange]) -> list[Key]:
        """Write all of one kind before the next. Returns the jobs whose change was dropped, because they are no longer
        in the state that the decision assumed.

        What the API server refuses of one job is that job's own: it is counted, reported in an event, and tried again
        later.

        Raises LeadLostError, aiohttp.ClientError or TimeoutError (the API server cannot be reached), or ApiError 401
        (it does not know this component): then what follows is not written.
        """
        dropped: list[Key] = []
        written: list[StatusChange] = []
        self._patient_until = asyncio.get_running_loop().time() + _PATIENCE_S
        for kind, group in groupby(changes, key=lambda change: change.kind):
            batch = list(group)
            with span("write", kind=str(kind), jobs=len(batch)):
                done = await some_at_once(self._write, batch, most=_AT_ONCE)
            dropped += [
                change.job.key for change, outcome in zip(batch, done, strict=True) if outcome is _Outcome.DROPPED
            ]
            written += [change for change, outcome in zip(batch, done, strict=True) if outcome is _Outcome.WRITTEN]
        await self._tell_preempted(written)
        return dropped

    async def _tell_preempted(self, written: Iterable[StatusChange]) -> None:
        """Events of the runs that the plan ended, after all else is written."""
        ended = [(change.job, record) for change in written if (record := change.new_preemption) is not None]

        async def tell(one: tuple[JobView, PreemptionRecord]) -> None:
            job, record = one
            await self._tell(job, say(Reason.PREEMPTED, run=record.run, text=record.text))

        await some_at_once(tell, ended, most=_AT_ONCE)

    async def _write(self, change: StatusChange) -> _Outcome:
        only_told = change.kind in _ONLY_TOLD
        if not self._unwritten.may_write(change.job, only_told=only_told):
            return _Outcome.REFUSED
        try:
            outcome = await self._applied(change)
        except ApiError as error:
            if error.code == _UNAUTHORIZED:
                raise
            self._metrics.writes.refused.labels(str(error.code)).inc()
            _LOG.warning("%s of %s is refused: %s", change.kind.name.lower(), change.job.key, error)
            outcome = _Outcome.REFUSED
            told = self._unwritten.refused(change.job, error, only_told=only_told)
            if told is not None:
                await self._tell(change.job, told)
        self._metrics.writes.status.labels(change.kind.name.lower(), outcome.name.lower()).inc()
        if outcome is _Outcome.WRITTEN:
            self._unwritten.written(change.job, only_told=only_told)
            count_change(self._metrics, change, self._clock())
        return outcome

    async def _applied(self, change: StatusChange) -> _Outcome:
        """Raises ApiError for what the API server refuses for good, or for as long as this pass can wait."""
        job: JobView | None = change.job
        for tries_left in reversed(range(_TRIES)):
            if job is None or not self._same(job, change):
                break
            try:
                answer = await self._apply(job, change)
            except (Conflict, NotFound) as error:
                job = await self._fresh(job)
                if isinstance(error, NotFound) and job is not None and not tries_left:
                    raise  # the job is there and its namespace is not: no write will ever come through
                continue
            except ApiError as error:
                if not tries_left or not await self._waited(error):
                    raise
                continue
            self._observe(answer, decided=True)
            _log(change)
            return _Outcome.WRITTEN
        return _Outcome.DROPPED

    async def _apply(self, job: JobView, change: StatusChange) -> Object:
        """One request, which is over before another replica can lead."""
        if not self._lead.leading:
            raise LeadLostError
        try:
            async with asyncio.timeout(self._lead.left_s):
                return await self._client.apply(
                    TRAINING_JOBS, job.key.name, body_of(job, change), job.key.namespace,
                    manager=MANAGER_PLAN, subresource="status",
                )  # fmt: skip
        except TimeoutError:
            if not self._lead.leading:
                raise LeadLostError from None
            # the lead was renewed meanwhile, so the API server answers: it is this job's write that takes so long
            raise ApiError(504, "Timeout", "no answer in time") from None

    async def _waited(self, error: ApiError) -> bool:
        """Wait for an API server that is busy or has trouble; False where that would hold up the others too long."""
        if not is_busy(error):
            return False
        wait = max(_PAUSE_S, error.retry_after_s or 0.0)
        if asyncio.get_running_loop().time() + wait > self._patient_until:
            return False
        await asyncio.sleep(wait)
        return True

    async def _tell(self, job: JobView, finding: Finding) -> None:
        kind = ENTRIES[finding.reason].event
        if kind is not None:
            await post_event(
                self._client,
                Subject(TRAINING_JOBS, job.key.name, job.uid, job.key.namespace),
                kind=kind,
                reason=finding.reason,
                message=finding.message,
                component=MANAGER_PLAN,
                at=format_time(float(int(self._clock()))),
            )

    def _same(self, job: JobView, change: StatusChange) -> bool:
        """Whether the job is still in the state that the decision assumed; what others wrote of it meanwhile does not
        matter."""
        base, now = change.job, self._clock()
        same_part = (job.status.allocation, job.status.marks) == (base.status.allocation, base.status.marks)
        return job.uid == base.uid and same_part and stance(job, now) == stance(base, now)

    async def _fresh(self, job: JobView) -> JobView | None:
        try:
            item = await self._client.get(TRAINING_JOBS, job.key.name, job.key.namespace)
        except NotFound:
            self._vanished(job)
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
    if change.restriction is not None:
        status["restriction"] = change.restriction.to_wire()
    if change.estimates is not None:
        status["estimates"] = [estimate.to_wire() for estimate in change.estimates]
    if change.preemptions:
        status["preemptions"] = [one.to_wire() for one in change.preemptions]
    if change.marks is not None:
        status["marks"] = change.marks.to_wire()
    if change.summary is not None and (summary := change.summary.to_wire()):
        status["summary"] = summary
    return {"metadata": {"uid": job.uid, "resourceVersion": job.resource_version}, "status": status}


def _log(change: StatusChange) -> None:
    if change.kind in _ONLY_TOLD or change.allocation is None:
        return
    allocation = change.allocation
    _LOG.log(
        logging.DEBUG if change.kind is ChangeKind.STAY else logging.INFO,
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
