"""Takes workers' reports: identifies the worker, passes the report on, and answers."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from synergy_api.names import ROLE_WORKER, TOKEN_AUDIENCE, worker_pod_name
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.fresh import FreshLook
from synergy_extender.cluster.placements import domains_of
from synergy_extender.cluster.run_state import service_of
from synergy_extender.cluster.views import JobView, Key, PodView, RunMember
from synergy_extender.failures import CALL_FAILED, explain
from synergy_extender.leases.claims import ClaimError, claims_of
from synergy_extender.leases.progress_budget import ProgressBudget
from synergy_extender.leases.progress_writer import ProgressWriter
from synergy_extender.leases.reports import Report, Reported, due, outdated, progress_after
from synergy_extender.leases.review_turns import BusyError, Lane
from synergy_extender.leases.tokens import Identity, Reviewer, Turn
from synergy_extender.leases.verdict import Verdict, leave_at_once, verdict
from synergy_extender.metrics import Metrics
from synergy_extender.rounds import Rounds
from synergy_kube import Conflict

_LOG = logging.getLogger(__name__)
_TRIES = 4
_TIDY_SECONDS = 5.0
WRITES_PER_SECOND = 20.0


class TokenRefusedError(Exception):
    """401: the token is not valid for this endpoint."""


class NoWorkerError(Exception):
    """403: the token is of no worker pod."""


class NotReadyError(Exception):
    """503: this replica cannot answer now."""


@dataclass(frozen=True, slots=True)
class _Last:
    """A last report of a run of a TrainingJob."""

    uid: str
    run: int
    done: bool


class LeaseService:
    """Answers reports. Job, run and rank are those of the pod that the token is bound to, whatever is in the body."""

    def __init__(
        self,
        cache: ClusterCache,
        fresh: FreshLook,
        reviewer: Reviewer,
        writer: ProgressWriter,
        metrics: Metrics,
        *,
        rounds: Callable[[], Rounds],
        clock: Callable[[], float],
        writes_per_second: float = WRITES_PER_SECOND,
        planned: Callable[[], int] = lambda: 0,
    ) -> None:
        """`writes_per_second` is this replica's part of what the cluster bears of progress writes; `planned` gives the
        newest round that is known to be planned."""
        self._cache = cache
        self._fresh = fresh
        self._writer = writer
        self._reviewer = reviewer
        self._metrics = metrics
        self._rounds = rounds
        self._planned = planned
        self._clock = clock
        self._writing: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._last_of: dict[Key, _Last] = {}
        """By job, the newest last report. Two of each run are written outside of the budget: the first after which the
        worker leaves, and the one that says that the job is done."""
        self._last_writes: set[asyncio.Task[bool]] = set()
        self.progress = ProgressBudget(self._record, writes_per_second)

    async def run(self) -> None:
        """Write progress until cancelled, and forget jobs that are gone."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.progress.run())
            while True:
                self.progress.keep(self._cache.jobs.keys())
                for key in self._last_of.keys() - self._cache.jobs.keys():
                    del self._last_of[key]
                self._metrics.leases.progress_waiting.set(len(self.progress))
                await asyncio.sleep(_TIDY_SECONDS)

    async def report(self, token: str, report: Report, peer: str = "") -> Verdict:
        """Take a report that came from the address `peer`.

        Raises TokenRefusedError, NoWorkerError or NotReadyError with a text for the worker's log.
        """
        if not self._cache.synced:
            raise NotReadyError("this replica has not read the cluster yet")
        try:
            identity = await self._reviewer.identify(token, TOKEN_AUDIENCE, peer=peer, admit=lambda: self._admit(token))
        except BusyError as error:
            raise NotReadyError(f"the token cannot be reviewed now: {error}") from error
        except CALL_FAILED as error:
            raise NotReadyError(f"the API server cannot review the token: {explain(error)}") from error
        if identity is None:
            raise TokenRefusedError(f"the token is not valid for the audience {TOKEN_AUDIENCE}")
        try:
            pod, member = await self._worker(identity)
            job = await self._job(member)
        except CALL_FAILED as error:
            raise NotReadyError(f"the API server cannot be asked about the worker: {explain(error)}") from error
        ours = member.is_of(job)
        answer = (
            verdict(job.status, pod, self._clock(), self._rounds(), self._planned()) if ours else leave_at_once(pod)
        )
        self._metrics.leases.reports.labels(answer.verdict).inc()
        if ours and member.rank == 0 and service_of(job).ended_run < member.run:
            reported = Reported(job.uid, member.run, report)
            if self._is_last(job, member.run, report, leaves=answer.yield_in_s is not None):
                self.progress.take(job.key, reported)
                # the worker hears what to do before the API server has taken its report
                task = asyncio.create_task(self._record(job.key, reported, last=True))
                self._last_writes.add(task)
                task.add_done_callback(self._last_writes.discard)
            else:
                self.progress.offer(job.key, reported)
        return answer

    def _is_last(self, job: JobView, run: int, report: Report, *, leaves: bool) -> bool:
        """Whether the report is written at once, as one of the run's last."""
        if not (leaves or report.done):
            return False
        known = self._last_of.get(job.key)
        if known is not None and (known.uid, known.run) == (job.uid, run) and (known.done or not report.done):
            return False
        self._last_of[job.key] = _Last(job.uid, run, report.done)
        return True

    def _admit(self, token: str) -> Turn:
        """The lane in which the API server reviews a token, by the claims in the token. Raises TokenRefusedError or
        NoWorkerError for one that can be no worker's."""
        try:
            claim = claims_of(token, TOKEN_AUDIENCE, self._clock())
        except ClaimError as error:
            raise TokenRefusedError(str(error)) from error
        if not claim.uid:
            raise NoWorkerError("the token is not bound to a worker pod of a TrainingJob")
        pod = self._cache.pods.get(claim.namespace, claim.name)
        if pod is None or pod.uid != claim.uid:
            return Turn(Lane.UNKNOWN)
        if pod.member is None or pod.member.role != ROLE_WORKER:
            raise NoWorkerError("the token is not bound to a worker pod of a TrainingJob")
        return Turn(Lane.WORKER, pod.uid)

    async def _worker(self, identity: Identity) -> tuple[PodView, RunMember]:
        """The pod that the token is bound to. A watch that has not brought the pod yet is no reason to refuse it."""
        name = Key(identity.pod_namespace, identity.pod_name)
        pod = self._cache.pods.get(*name) if identity.pod_name else None
        if identity.pod_name and (pod is None or pod.uid != identity.pod_uid):
            pod = await self._fresh.pod(name)
        if pod is None or pod.uid != identity.pod_uid or pod.member is None or pod.member.role != ROLE_WORKER:
            raise NoWorkerError("the token is not bound to a worker pod of a TrainingJob")
        member = pod.member
        if pod.name != worker_pod_name(member.job.name, member.run, member.rank):
            raise NoWorkerError(f"pod {pod.name} is not the worker that its labels say")
        return pod, member

    async def _job(self, member: RunMember) -> JobView:
        """The worker's job, as new as what the worker was made from: an older state would send it away at its start. It
        is another one of the name where the worker's own is gone."""
        job = self._cache.jobs.get(member.job)
        if job is None or not member.is_of(job) or _knows_no_such_run(job, member.run):
            job = await self._fresh.job(member.job)
        if job is None:
            raise NoWorkerError(f"TrainingJob {member.job} does not exist")
        return job

    async def _record(self, key: Key, reported: Reported, *, last: bool = False) -> bool:
        """Write the progress if it is due, and say whether that took a write. The worker's answer does not depend on
        its success."""
        lock = self._writing.setdefault(key, asyncio.Lock())
        async with lock:
            try:
                return await self._write(key, reported, last=last)
            except CALL_FAILED as error:
                _LOG.warning("progress of %s is not written: %s", key, explain(error))
                return True

    async def _write(self, key: Key, reported: Reported, *, last: bool) -> bool:
        """Guarded by the resource version: a delayed write cannot undo a later replica's."""
        for tried in range(_TRIES):
            job = self._cache.jobs.get(key)
            if job is None or outdated(job, reported):
                return tried > 0
            now = self._clock()
            domains = domains_of(self._cache.capacities())
            progress = progress_after(job, reported, now, self._cache.jobs, domains)
            if not due(job.status.progress, progress, now, last=last):
                return tried > 0
            try:
                self._metrics.leases.progress_writes.inc()
                await self._writer.apply(job, progress)
            except Conflict:
                await self._fresh.job(key)
            else:
                break
        return True


def _knows_no_such_run(job: JobView, run: int) -> bool:
    allocation = job.status.allocation
    return allocation is None or allocation.run < run
