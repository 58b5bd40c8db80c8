"""Writes of pods and of the batch Jobs of profile runs. The API server's answers go into the caches at once."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from synergy_api.names import ANNOTATION_JOB_UID, ANNOTATION_PLANNED_NODE, LABEL_JOB, LABEL_RANK, LABEL_RUN
from synergy_api.timestamps import format_time
from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.resources import JOBS, PODS, RESOURCE_CLAIMS, Resource
from synergy_operator.actions import (
    ClaimPod,
    ConfirmUnbound,
    CreateJob,
    CreatePod,
    DeleteJob,
    DeletePod,
    EnsureClaim,
    ResizePod,
    UngatePod,
)
from synergy_operator.edge.caches.objects import OwnedCache
from synergy_operator.edge.caches.refusals import RefusalLog
from synergy_operator.edge.refused_starts import INVALID, REFUSED, NameTakenError, RefusedStarts
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.pods.claim import asks_for, owned_by
from synergy_operator.run.allocation import open_allocation
from synergy_operator.views.annotations import ANNOTATION_UNGATED_AT
from synergy_operator.views.batch_job import BatchJobView, read_batch_job
from synergy_operator.views.job import JobView
from synergy_operator.views.pod import PodView, read_pod
from synergy_operator.views.refusals import RefusedResize

_LOG = logging.getLogger(__name__)


class PodWriter:
    """Creates, changes and deletes the pods and batch Jobs of a job, one action at a time."""

    def __init__(
        self,
        client: KubeClient,
        *,
        pods: OwnedCache[PodView],
        batch_jobs: OwnedCache[BatchJobView],
        refusals: RefusalLog,
        refused: RefusedStarts,
        clock: Callable[[], float],
    ) -> None:
        """`refusals` records refused sizes, `refused` counts errors that may pass, `clock` gives Unix time."""
        self._client = client
        self._pods = pods
        self._batch_jobs = batch_jobs
        self._refusals = refusals
        self._refused = refused
        self._clock = clock

    async def confirm_unbound(self, job: JobView, action: ConfirmUnbound) -> None:
        """Raise TryAgain if the pod is bound or gone."""
        try:
            pod = read_pod(await self._client.get(PODS, action.name, job.namespace))
        except NotFound as error:
            self._pods.drop((job.namespace, action.name), action.uid)
            raise TryAgain(f"pod {action.name} is gone") from error
        self._pods.keep(pod)
        if pod.uid != action.uid or pod.node:
            raise TryAgain(f"pod {action.name} has been bound or replaced")

    async def create_pod(self, job: JobView, action: CreatePod) -> None:
        """Create a worker pod. If this job's pod of that name exists, it is kept."""
        try:
            answer = await self._client.create(PODS, action.manifest, job.namespace)
        except Conflict as error:
            answer = await self._ours(job, PODS, action, error)
            if read_pod(answer).owner != job.uid:
                raise TryAgain(f"pod {answer['metadata']['name']} of an earlier job is still there") from None
        self._pods.keep(read_pod(answer))

    async def create_job(self, job: JobView, action: CreateJob) -> None:
        """Create a profile Job. If this job's Job of that name exists, it is kept."""
        try:
            answer = await self._client.create(JOBS, action.manifest, job.namespace)
        except Conflict as error:
            answer = await self._ours(job, JOBS, action, error)
            if read_batch_job(answer).owner != job.uid:
                raise TryAgain(f"Job {answer['metadata']['name']} of an earlier job is still there") from None
        if action.claim is not None:
            await self._ensure_claim(job, dict(action.claim), JOBS, answer["metadata"])
        self._batch_jobs.keep(read_batch_job(answer))

    async def ensure_claim(self, job: JobView, action: EnsureClaim) -> None:
        """Create the ResourceClaim of a pod. If this pod's claim exists, it is kept."""
        await self._ensure_claim(job, dict(action.manifest), PODS, {"name": action.pod, "uid": action.uid})

    async def _ensure_claim(
        self, job: JobView, manifest: dict[str, Any], kind: Resource, owner: Mapping[str, Any]
    ) -> None:
        reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": owner["name"], "uid": owner["uid"]}
        name = manifest["metadata"]["name"]
        try:
            await self._client.create(RESOURCE_CLAIMS, owned_by(manifest, reference), job.namespace)
        except Conflict as error:
            found = await self._client.get(RESOURCE_CLAIMS, name, job.namespace)
            owners = {one["uid"] for one in found["metadata"].get("ownerReferences") or []}
            if owner["uid"] in owners and asks_for(found, manifest):
                return
            if owner["uid"] in owners:
                raise NameTakenError(f"ResourceClaim {name} is there and asks for other devices") from error
            if (found["metadata"].get("labels") or {}).get(LABEL_JOB) != job.name:
                raise NameTakenError(error.message) from error
            raise TryAgain(f"ResourceClaim {name} of an earlier pod is still there") from error

    async def _ours(
        self, job: JobView, resource: Resource, action: CreatePod | CreateJob, refusal: Conflict
    ) -> dict[str, Any]:
        """The existing object of the name, made for this job or an earlier one of its name.

        Somebody else's object is not touched, and would block the run for ever. The run is refused, and the next run
        has new names.
        """
        answer = await self._client.get(resource, action.manifest["metadata"]["name"], job.namespace)
        if (answer["metadata"].get("labels") or {}).get(LABEL_JOB) != job.name:
            raise NameTakenError(refusal.message) from refusal
        return answer

    async def claim(self, job: JobView, action: ClaimPod) -> None:
        """Make a pod of a managed object a worker of a run."""
        labels = {LABEL_RUN: str(action.run), LABEL_RANK: str(action.rank)}
        annotations = {ANNOTATION_PLANNED_NODE: action.node, ANNOTATION_JOB_UID: action.job_uid}
        body = {
            "metadata": {"uid": action.uid, "labels": labels, "annotations": annotations},
            "spec": {"affinity": {"nodeAffinity": action.node_affinity}},
        }
        patch = self._client.merge_patch(PODS, action.name, body, job.namespace)
        await self._patched(job, action.name, action.uid, patch)

    async def ungate(self, job: JobView, action: UngatePod) -> None:
        """Remove the operator's gate from a pod."""
        body = {
            "metadata": {"uid": action.uid, "annotations": {ANNOTATION_UNGATED_AT: format_time(action.at)}},
            "spec": {"schedulingGates": [{"name": gate} for gate in action.gates]},
        }
        patch = self._client.merge_patch(PODS, action.name, body, job.namespace)
        await self._patched(job, action.name, action.uid, patch)

    async def resize(self, job: JobView, action: ResizePod) -> None:
        """Resize a pod in place, and record a refusal."""
        amounts = action.amounts.quantities
        sizes = {"name": action.container, "resources": {"requests": amounts, "limits": amounts}}
        body = {"metadata": {"uid": action.uid}, "spec": {"containers": [sizes]}}
        patch = self._client.strategic_patch(PODS, action.name, body, job.namespace, subresource="resize")
        try:
            await self._patched(job, action.name, action.uid, patch)
        except ApiError as error:
            allocation = open_allocation(job.status)
            for_good = allocation is not None and self._refused.for_good(job, allocation.run)
            if error.code not in (*REFUSED, 404) and not for_good:
                raise
            invalid = error.code in INVALID
            size = RefusedResize(action.amounts, error.message, self._clock(), invalid)
            self._refusals.refuse_resize(job.key, action.uid, size)
            _LOG.warning("%s/%s: resize refused: %s", job.namespace, action.name, error)

    async def _patched(self, job: JobView, name: str, uid: str, patch: Awaitable[Mapping[str, Any]]) -> None:
        """Apply a patch to a pod. A pod that no longer exists is dropped from the cache.

        NotFound without the pod's name means the subresource.
        """
        try:
            answer = await patch
        except NotFound as error:
            if name not in error.message:
                raise
            self._pods.drop((job.namespace, name), uid)
        except Conflict as error:
            raise TryAgain(f"pod {name} has changed since it was read") from error
        else:
            self._pods.keep(read_pod(answer))

    async def delete_pod(self, job: JobView, action: DeletePod) -> None:
        """Delete a pod."""
        try:
            answer = await self._client.delete(
                PODS, action.name, job.namespace, uid=action.uid, grace_seconds=action.grace_seconds
            )
        except (NotFound, Conflict):
            self._pods.drop((job.namespace, action.name), action.uid)
            return
        if "deletionTimestamp" in answer["metadata"]:
            self._pods.keep(read_pod(answer))
        else:
            self._pods.drop((job.namespace, action.name), action.uid)

    async def delete_job(self, job: JobView, action: DeleteJob) -> None:
        """Delete a profile Job."""
        try:
            answer = await self._client.delete(JOBS, action.name, job.namespace, uid=action.uid)
        except (NotFound, Conflict):
            answer = {}
        if "deletionTimestamp" in answer.get("metadata", {}):
            self._batch_jobs.keep(read_batch_job(answer))
        else:
            self._batch_jobs.drop((job.namespace, action.name), action.uid)
