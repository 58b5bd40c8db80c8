"""Carries out the actions of a reconcile. The API server's answers go into the caches at once."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from typing import Any, Final

from synergy_api.names import LABEL_MEASURED_FOR, LABEL_PUBLISHED, MANAGER_OPERATOR
from synergy_api.reasons import Reason, say
from synergy_api.timestamps import format_time
from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.events import Subject, post_event
from synergy_kube.resources import SECRETS, SERVICES, THROUGHPUT_PROFILES, TRAINING_JOBS
from synergy_operator.actions import (
    Action,
    ApplyStatus,
    ChangeMember,
    ClaimPod,
    ConfirmUnbound,
    CreateJob,
    CreateMember,
    CreatePod,
    DeleteJob,
    DeletePod,
    DeleteTrainingJob,
    EnsureClaim,
    EnsureGangKey,
    EnsureService,
    PostEvent,
    PublishProfile,
    ReadWarning,
    ResizePod,
    SetSuspended,
    UngatePod,
)
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.caches.objects import OwnedCache
from synergy_operator.edge.caches.refusals import RefusalLog
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.managed.writer import OwnerWriter
from synergy_operator.edge.member_writer import MemberWriter
from synergy_operator.edge.pod_writer import PodWriter
from synergy_operator.edge.refused_starts import REFUSED, NameTakenError, RefusedStarts
from synergy_operator.edge.warning_reader import WarningReader
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.pods.gang import GANG_KEY
from synergy_operator.pods.service_owner import Holder, holder
from synergy_operator.run.allocation import open_allocation
from synergy_operator.views.batch_job import BatchJobView
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key
from synergy_operator.views.pod import PodView
from synergy_service.tracing import span

_GANG_KEY_BYTES: Final = 32
_TOO_LARGE: Final = "request is too large"
"""Part of etcd's message for an object that is too large, in an answer with code 500."""


class Executor:
    """Carries out the actions of one job in order. Consecutive actions of one type run concurrently."""

    def __init__(
        self,
        client: KubeClient,
        *,
        jobs: JobCache,
        pods: OwnedCache[PodView],
        batch_jobs: OwnedCache[BatchJobView],
        refusals: RefusalLog,
        warnings: WarningReader,
        events: EventQueue,
        owners: OwnerWriter,
        clock: Callable[[], float],
        wake: Callable[[Key], None],
        steady: Callable[[], float] = time.monotonic,
        run_ended: Callable[[str, str, float], None] | None = None,
    ) -> None:
        """`run_ended` is called with purpose, outcome and GPU-seconds of each run whose accounting is closed.

        `wake` is called with each job that must be looked at again.
        """
        self._run_ended = run_ended or (lambda purpose, outcome, gpu_seconds: None)
        self._client = client
        self._events = events
        self._jobs = jobs
        self._refused = RefusedStarts(refusals, steady)
        self._pod_writer = PodWriter(
            client, pods=pods, batch_jobs=batch_jobs, refusals=refusals, refused=self._refused, clock=clock
        )
        self._members = MemberWriter(client, jobs, refusals, clock, wake)
        self._warnings = warnings
        self._clock = clock
        self._reported_refused: dict[tuple[str, str], str] = {}
        self._how: Mapping[type[Action], Callable[[JobView, Any], Awaitable[None]]] = {
            ApplyStatus: self._apply_status,
            PostEvent: self._post_event,
            ReadWarning: self._read_warning,
            ConfirmUnbound: self._pod_writer.confirm_unbound,
            EnsureService: self._ensure_service,
            EnsureGangKey: self._ensure_gang_key,
            CreatePod: self._pod_writer.create_pod,
            EnsureClaim: self._pod_writer.ensure_claim,
            UngatePod: self._pod_writer.ungate,
            ClaimPod: self._pod_writer.claim,
            SetSuspended: lambda job, action: owners.set_suspended(job.namespace, action),
            ResizePod: self._pod_writer.resize,
            DeletePod: self._pod_writer.delete_pod,
            CreateJob: self._pod_writer.create_job,
            DeleteJob: self._pod_writer.delete_job,
            PublishProfile: self._publish,
            CreateMember: self._members.create,
            ChangeMember: self._members.change,
            DeleteTrainingJob: self._delete_training_job,
        }

    async def carry_out(self, job: JobView, actions: Iterable[Action]) -> None:
        """Carry out all actions.

        Raises TryAgain if the decision rested on outdated data, and passes on ApiError and errors of the client. The
        actions after a failed one are not carried out.
        """
        for kind, alike in groupby(actions, key=type):
            do = self._how[kind]
            todo = list(alike)
            with span("act", kind=kind.__name__, count=len(todo)):
                results = await asyncio.gather(*(do(job, action) for action in todo), return_exceptions=True)
            for action, result in zip(todo, results, strict=True):
                if isinstance(result, BaseException):
                    self._refused.record(job, action, result)
                    raise result

    def forget(self, key: Key) -> None:
        """The job no longer exists."""
        self._reported_refused.pop(key, None)

    async def _post_event(self, job: JobView, action: PostEvent) -> None:
        subject = Subject(TRAINING_JOBS, job.name, job.uid, job.namespace)
        post = partial(
            post_event,
            self._client,
            subject,
            kind=action.kind,
            reason=action.reason,
            message=action.message,
            component=MANAGER_OPERATOR,
            at=format_time(float(int(self._clock()))),
        )
        self._events.add(job.uid, post)

    async def _read_warning(self, job: JobView, action: ReadWarning) -> None:
        self._warnings.ask(job.key, action.uid)

    async def _apply_status(self, job: JobView, action: ApplyStatus) -> None:
        body = {"metadata": {"resourceVersion": job.resource_version}, "status": action.status.to_wire()}
        try:
            answer = await self._client.apply(
                TRAINING_JOBS, job.name, body, job.namespace, manager=MANAGER_OPERATOR, subresource="status"
            )
        except Conflict as error:
            raise TryAgain("the job has changed since it was read") from error
        except NotFound as error:
            raise self._not_found(job, error) from error
        except ApiError as error:
            await self._report_refused_status(job, error)
            raise
        self._reported_refused.pop(job.key, None)
        self._jobs.take(answer)
        allocation, service = open_allocation(job.status), action.status.service
        if allocation is not None and service is not None and service.ended_run >= allocation.run:
            outcome = (
                service.last.outcome if service.last is not None and service.last.run == allocation.run else "None"
            )
            before = job.status.service.attained_gpu_seconds if job.status.service is not None else 0.0
            self._run_ended(allocation.purpose, outcome, service.attained_gpu_seconds - before)

    def _not_found(self, job: JobView, error: NotFound) -> TryAgain:
        """Forget a job that is gone. One without a namespace is still there, and goes on if there is one of that name
        again."""
        if error.message == f'namespaces "{job.namespace}" not found':
            return TryAgain(error.message)
        self._jobs.drop(job.key, job.uid)
        return TryAgain("the job is gone")

    async def _report_refused_status(self, job: JobView, error: ApiError) -> None:
        """What no condition can show goes into an event, once until a write succeeds."""
        for_good = error.code in REFUSED or _TOO_LARGE in error.message
        if for_good and self._reported_refused.get(job.key) != job.uid:
            self._reported_refused[job.key] = job.uid
            finding = say(Reason.STATUS_REFUSED, problem=str(error))
            await self._post_event(job, PostEvent("Warning", finding.reason, finding.message))

    async def _ensure_service(self, job: JobView, action: EnsureService) -> None:
        name, manifest = action.manifest["metadata"]["name"], action.manifest
        try:
            found = await self._client.get(SERVICES, name, job.namespace)
        except NotFound:
            await self._create_service(job, name, manifest)
            return
        match holder(found, manifest, job):
            case Holder.FOREIGN:
                raise NameTakenError(f'services "{name}" already exists and is not of TrainingJob {job.name}')
            case Holder.EARLIER:
                raise TryAgain(f"Service {name} of an earlier job is still there")
            case Holder.OUTDATED:
                # with its uid: another Service that takes the name in the meantime is not overwritten
                body = {**manifest, "metadata": {**manifest["metadata"], "uid": found["metadata"]["uid"]}}
                await self._client.apply(SERVICES, name, body, job.namespace, manager=MANAGER_OPERATOR)

    async def _create_service(self, job: JobView, name: str, manifest: Mapping[str, Any]) -> None:
        try:
            await self._client.create(SERVICES, manifest, job.namespace)
        except Conflict as error:
            raise TryAgain(f"Service {name} was created by somebody else in the meantime") from error

    async def _ensure_gang_key(self, job: JobView, action: EnsureGangKey) -> None:
        """Create the Secret of the job's gangs.

        An existing Secret stays, because its key may be in use. Its name contains the job's uid, so it is this job's.
        """
        drawn = {GANG_KEY: secrets.token_hex(_GANG_KEY_BYTES)}
        try:
            await self._client.create(SECRETS, {**action.manifest, "stringData": drawn}, job.namespace)
        except Conflict:
            return

    async def _publish(self, job: JobView, action: PublishProfile) -> None:
        try:
            if action.version:
                body = {"metadata": {"resourceVersion": action.version}, "spec": action.spec}
                await self._client.apply(THROUGHPUT_PROFILES, action.name, body, manager=MANAGER_OPERATOR)
            else:
                labels = {LABEL_PUBLISHED: "true", LABEL_MEASURED_FOR: job.namespace}
                body = {"metadata": {"name": action.name, "labels": labels}, "spec": action.spec}
                await self._client.create(THROUGHPUT_PROFILES, body)
        except Conflict as error:
            raise TryAgain(f"ThroughputProfile {action.name} has changed since it was read") from error

    async def _delete_training_job(self, job: JobView, _: DeleteTrainingJob) -> None:
        try:
            await self._client.delete(TRAINING_JOBS, job.name, job.namespace, uid=job.uid)
        except (NotFound, Conflict):
            self._jobs.drop(job.key, job.uid)
