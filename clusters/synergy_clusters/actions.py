"""What steps of the protocol do: writes into the hub and into a worker cluster."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from synergy_api.names import ANNOTATION_GIVE_UP, FINALIZER_CLUSTERS, LABEL_HUB, MANAGER_CLUSTERS
from synergy_api.parts.relations.clusters import ClusterOffer
from synergy_api.reasons import Reason, say
from synergy_api.timestamps import format_time, parse_time
from synergy_clusters.claims.fence import Fence
from synergy_clusters.copies import manifest, permit, update
from synergy_clusters.forecast.prospects import Placed
from synergy_clusters.protocol import Seen, Step
from synergy_clusters.status import failed, given_up_now, is_urgent, offered_now, start_in_words, told
from synergy_clusters.views import NEVER, Copy, HubJob, Key, ours, read_copy, read_hub_job
from synergy_clusters.worker_clusters.worker import Worker
from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.resources import TRAINING_JOBS

_LOG = logging.getLogger(__name__)
SLOW_SECONDS: Final = 10.0
"""Between two writes of a job's progress and place in the queue."""
REFUSED_SECONDS: Final = 30
_LATER: Final = f"every {REFUSED_SECONDS} s"
_GONE_SECONDS: Final = 1.0
_REFUSED: Final = (400, 401, 403, 404, 409, 422)
"""Answers of a cluster that does not take the copy: no namespace, no right, a quota, another schema, its name taken."""


class Again(Exception):  # noqa: N818 - no error
    """Look at the job again after so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Actions:
    """Carries out steps. `hub` identifies the hub cluster; `clock` gives Unix time."""

    def __init__(self, client: KubeClient, hub: str, fence: Fence, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._hub = hub
        self._fence = fence
        self._clock = clock
        self._written: dict[str, float] = {}
        self._refused: dict[str, dict[str, tuple[float, str]]] = {}

    def refusals(self, job: HubJob) -> Mapping[str, str]:
        """The clusters that have refused the job lately, with the reason."""
        now = self._clock()
        return {name: why for name, (until, why) in self._refused.get(job.uid, {}).items() if until > now}

    def forget(self, uid: str) -> None:
        """The hub's job is gone."""
        self._written.pop(uid, None)
        self._refused.pop(uid, None)

    async def read_hub_job(self, key: Key) -> HubJob | None:
        """The hub's job as it is now."""
        try:
            item = await self._client.get(TRAINING_JOBS, key[1], key[0])
        except NotFound:
            return None
        return read_hub_job(item) if ours(item) else None

    async def take_over(self, key: Key, job: HubJob, cluster: str, copy: Copy) -> HubJob:
        """Write that the job is where this copy is. Refused if only the job that was read is old."""
        _LOG.warning("%s/%s: the hub does not know of offer %d in cluster %s", *key, copy.offer, cluster)
        uid = copy.uid if copy.may_start else ""
        offer = self._place(job, name=cluster, offer=copy.offer, fixed=copy.may_start, uid=uid)
        offered = offered_now(replace(job, offer=offer), reachable=True, away_since=0.0)
        return await self._write(key, job, told(job, offer, copy, offered, self._clock()))

    async def delete_copy(self, worker: Worker, key: Key, copy: Copy) -> None:
        """Delete this very copy."""
        _LOG.info("cluster %s: %s/%s of offer %d is deleted", worker.name, *key, copy.offer)
        try:
            await worker.client.delete(TRAINING_JOBS, key[1], key[0], uid=copy.uid)
        except NotFound:
            return

    async def carry_out(self, step: Step, key: Key, job: HubJob, seen: Seen, worker: Worker | None) -> HubJob | None:
        """Carry out a step. The job as the hub's answer shows it; None where only a watch shows what comes of it."""
        if step in (Step.PROTECT, Step.RELEASE):
            return await self._finalizers(key, job, protected=step is Step.PROTECT)
        if step is Step.NOTHING:
            return await self._after_the_end(key, job)
        in_hub = {Step.TELL: self._tell, Step.FIX: self._fix, Step.GIVE_UP: self._give_up}
        if step in in_hub:
            return await in_hub[step](key, job, seen)
        assert worker is not None, "only a cluster that is there can be written to"
        if step is Step.UPDATE:
            await self._update(key, job, seen, worker)
            return None
        act = {
            Step.CREATE: self._create,
            Step.PERMIT: self._permit,
            Step.DELETE_COPY: self._delete,
            Step.FAIL: self._fail,
            Step.KEEP: self._keep,
        }[step]
        return await act(key, job, worker)

    async def offer(self, key: Key, job: HubJob, answer: Placed) -> HubJob | None:
        """Write which cluster the job is offered to, or that none takes it."""
        now, best = self._clock(), answer.best
        if best is None:
            problems = "; ".join(f"{name}: {why}" for name, why in sorted(answer.problems.items()))
            when = _LATER if answer.reached else "in the next round of forecasts"
            facts = {"problems": problems or "there are no worker clusters", "when": when}
            status = told(job, self._nowhere(job), None, (False, say(Reason.NO_CLUSTER, **facts)), now)
            return await self._write(key, job, status) if status != job.item.get("status") else None
        offer = self._place(job, name=best.cluster, offer=job.offer.offer + 1)
        start = start_in_words(best.start_s, now, answer.problems.get(best.cluster, ""))
        finding = say(Reason.OFFERED_TO_CLUSTER, cluster=best.cluster, start=start)
        _LOG.info("%s/%s is offered to cluster %s (offer %d)", *key, offer.name, offer.offer)
        return await self._write(key, job, told(job, offer, None, (True, finding), now))

    def _nowhere(self, job: HubJob) -> ClusterOffer:
        if not job.offer.name and job.offer != NEVER:
            return job.offer
        return self._place(job, name="", offer=job.offer.offer)

    def _place(self, job: HubJob, **fields: Any) -> ClusterOffer:
        """Where the job is from now on. What was given up stays so."""
        return ClusterOffer(**{"since": format_time(self._clock()), "given_up": job.offer.given_up, **fields})

    async def _create(self, key: Key, job: HubJob, worker: Worker) -> HubJob | None:
        body = manifest(job, self._hub, job.offer.offer)
        try:
            await worker.client.create(TRAINING_JOBS, body, key[0])
        except ApiError as error:
            if error.code not in _REFUSED:
                raise
            present = await self._present(worker, key, job) if isinstance(error, Conflict) else None
            if present is not None and present.is_of(job, job.offer):
                return None
            refused = self._refused.setdefault(job.uid, {})
            refused[worker.name] = self._clock() + REFUSED_SECONDS, error.message
            _LOG.warning("cluster %s refuses %s/%s: %s", worker.name, *key, error.message)
            finding = say(Reason.NO_CLUSTER, problems=f"{worker.name}: {error.message}", when=_LATER)
            return await self._write(key, job, told(job, self._nowhere(job), None, (False, finding), self._clock()))
        return None

    async def _fix(self, key: Key, job: HubJob, seen: Seen) -> HubJob | None:
        copy = seen.copy
        assert copy is not None, "what is not there asks for nothing"
        offer = job.offer.model_copy(update={"fixed": True, "uid": copy.uid})
        finding = say(Reason.STAYS_IN_CLUSTER, cluster=offer.name)
        return await self._write(key, job, told(job, offer, copy, (True, finding), self._clock()))

    async def refuse(self, key: Key, job: HubJob, why: str) -> None:
        """Write that this controller must not act for the job now, and why."""
        offer = job.offer if job.offer.name else self._nowhere(job)
        status = told(job, offer, None, (False, say(Reason.HUB_REFUSED, why=why)), self._clock())
        if status != (job.item.get("status") or {}):
            await self._write(key, job, status)

    async def _permit(self, key: Key, job: HubJob, worker: Worker) -> None:
        await self._fence.advance()  # after the offer was fixed: older data of the hub is told by its mark from now on
        if not worker.claimed:
            raise Again(_GONE_SECONDS)
        patch = permit(job.offer.uid, job.offer.offer)
        await worker.client.merge_patch(TRAINING_JOBS, key[1], patch, key[0])

    async def _update(self, key: Key, job: HubJob, seen: Seen, worker: Worker) -> None:
        """Where the cluster refuses the change, the job goes on as it was, and the hub still learns how."""
        item = await worker.client.get(TRAINING_JOBS, key[1], key[0])
        try:
            await worker.client.merge_patch(TRAINING_JOBS, key[1], update(job, item), key[0])
        except ApiError as error:
            if error.code not in _REFUSED or isinstance(error, Conflict | NotFound):
                raise
            _LOG.error("cluster %s refuses the change of %s/%s: %s", worker.name, *key, error.message)
            await self._tell(key, job, seen)
            raise Again(REFUSED_SECONDS) from error

    async def _delete(self, key: Key, job: HubJob, worker: Worker) -> HubJob | None:
        """Delete what has the copy's name, if this hub made it; the hub's job may go once it is gone."""
        present = await self._present(worker, key, job)
        if present is None and job.deleting:
            return await self._finalizers(key, job, protected=False)
        if present is not None and not present.deleting:
            await self.delete_copy(worker, key, present)
        raise Again(_GONE_SECONDS)

    async def _fail(self, key: Key, job: HubJob, worker: Worker) -> HubJob | None:
        present = await self._present(worker, key, job)
        if present is not None and present.is_of(job, job.offer):
            raise Again(_GONE_SECONDS)  # the watch is behind
        _LOG.error("cluster %s no longer has %s/%s", worker.name, *key)
        return await self._write(key, job, failed(job, self._clock()))

    async def _give_up(self, key: Key, job: HubJob, seen: Seen) -> HubJob | None:
        _LOG.warning("%s/%s: offer %d in cluster %s is given up", *key, job.offer.offer, job.offer.name)
        nowhere = self._place(job, name="", offer=job.offer.offer, given_up=job.offer.offer)
        now = self._clock()
        return await self._write(key, job, told(job, nowhere, None, given_up_now(job, now - seen.away_s), now))

    async def _keep(self, key: Key, job: HubJob, worker: Worker) -> HubJob:
        """The annotation must not take effect the next time that the cluster is away."""
        _LOG.warning("%s/%s: cluster %s answers, so its copy is not given up", *key, worker.name)
        metadata = {"uid": job.uid, "resourceVersion": job.version, "annotations": {ANNOTATION_GIVE_UP: None}}
        return read_hub_job(await self._client.merge_patch(TRAINING_JOBS, key[1], {"metadata": metadata}, key[0]))

    async def _present(self, worker: Worker, key: Key, job: HubJob) -> Copy | None:
        """What this hub has created under the name, as it is now. Another hub may have a job of the same name there."""
        try:
            item = await worker.client.get(TRAINING_JOBS, key[1], key[0])
        except NotFound:
            return None
        copy, labels = read_copy(item), item["metadata"].get("labels") or {}
        return copy if labels.get(LABEL_HUB) == self._hub or copy.hub_job_uid == job.uid else None

    async def _finalizers(self, key: Key, job: HubJob, *, protected: bool) -> HubJob | None:
        others = [one for one in job.item["metadata"].get("finalizers") or () if one != FINALIZER_CLUSTERS]
        wanted = [*others, FINALIZER_CLUSTERS] if protected else others
        body = {"metadata": {"resourceVersion": job.version, "uid": job.uid, "finalizers": wanted}}
        try:
            return read_hub_job(await self._client.merge_patch(TRAINING_JOBS, key[1], body, key[0]))
        except NotFound:
            return None

    async def _tell(self, key: Key, job: HubJob, seen: Seen) -> HubJob | None:
        now = self._clock()
        copy = seen.copy if seen.reachable and seen.copy is not None and seen.copy.is_of(job, job.offer) else None
        offer = job.offer if job.offer.name else self._nowhere(job)
        offered = offered_now(job, reachable=seen.reachable, away_since=now - seen.away_s)
        status = told(job, offer, copy, offered, now)
        before: Mapping[str, Any] = job.item.get("status") or {}
        if status == before:
            return None
        wait = self._written.get(job.uid, 0.0) + SLOW_SECONDS - now
        if wait > 0 and not is_urgent(before, status):
            raise Again(wait)
        await self._write(key, job, status)
        return None

    async def _after_the_end(self, key: Key, job: HubJob) -> HubJob | None:
        """Delete a job some time after its end, if it says so."""
        lives = job.item["spec"].get("ttlSecondsAfterFinished")
        ended = (job.item.get("status") or {}).get("completionTime")
        if not job.finished or job.deleting or lives is None or ended is None:
            return None
        left = parse_time(ended) + lives - self._clock()
        if left > 0:
            raise Again(left)
        await self._client.delete(TRAINING_JOBS, key[1], key[0], uid=job.uid)
        return None

    async def _write(self, key: Key, job: HubJob, status: Mapping[str, Any]) -> HubJob:
        """Write the whole status of the version that was read. Raises Conflict if there is a newer one."""
        body = {"metadata": {"resourceVersion": job.version, "uid": job.uid}, "status": status}
        answer = await self._client.apply(
            TRAINING_JOBS, key[1], body, key[0], manager=MANAGER_CLUSTERS, subresource="status"
        )
        self._written[job.uid] = self._clock()
        return read_hub_job(answer)
