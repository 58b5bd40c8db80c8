"""Follows the hub's jobs and their copies, and carries out one step after the other for each (`protocol`)."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import aiohttp

from synergy_clusters.actions import Actions, Again
from synergy_clusters.claims.fence import Fence, Refused
from synergy_clusters.forecast.prospects import Placed
from synergy_clusters.offers import Offers, Wish
from synergy_clusters.protocol import Seen, Step, is_left_over, next_step, unknown_copy
from synergy_clusters.views import HubJob, Key, ours, read_hub_job
from synergy_clusters.work import Turns, Work
from synergy_clusters.worker_clusters.workers import Workers
from synergy_kube import ApiError, Change, Conflict, KubeClient, Reflector
from synergy_kube.resources import TRAINING_JOBS

_LOG = logging.getLogger(__name__)
_VIEW: Final = "view"
_AT_ONCE: Final = 16
"""Jobs that are worked on at the same time."""
_STEPS: Final = 4
"""Steps of a job in a row, each with what the last one's answer shows."""
_CONFLICT_SECONDS: Final = 1.0
_ERROR_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 2.0
NO_CLUSTER_SECONDS: Final = 30
"""Until a job that no cluster takes is offered again, and a cluster that has refused a job is asked again."""


class Dispatcher:
    """Everything between the hub's API server, the worker clusters and the pure protocol."""

    def __init__(
        self,
        client: KubeClient,
        actions: Actions,
        workers: Workers,
        fence: Fence,
        *,
        away_s: float,
        reconsider_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._actions = actions
        self._workers = workers
        self._fence = fence
        self._away_s = away_s
        self._reconsider_s = reconsider_s
        self._clock = clock
        self._jobs = Reflector(client, TRAINING_JOBS, trim=_trimmed, on_change=self._hub_changed)
        self._offers = Offers(lambda: workers.all, self._decided, clock)
        self._answers: dict[Key, tuple[Wish, Placed]] = {}
        self._offer_at: dict[str, float] = {}
        """When a job that no cluster takes is offered again, by uid."""
        self._move_at: dict[str, float] = {}
        """When a job that waits in a cluster may be offered to another."""
        self._asked: set[str] = set()
        """Whose decision is awaited."""
        self._work = Work(_AT_ONCE)
        self._turns = Turns(self._all_keys)

    @property
    def synced(self) -> bool:
        """Whether the hub's jobs are known."""
        return self._jobs.synced.is_set()

    @property
    def jobs(self) -> list[HubJob]:
        """The hub's jobs that run in worker clusters."""
        return [item[_VIEW] for item in self._jobs if _VIEW in item]

    async def run(self) -> None:
        """Work until cancelled. Nothing is done before the hub's jobs are known."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._jobs.run())
            await self._jobs.synced.wait()
            group.create_task(self._workers.run())
            group.create_task(self._fence.run())
            group.create_task(self._offers.run())
            group.create_task(self._look_again())
            while True:
                for key in await self._work.next():
                    group.create_task(self._look(key))

    def cluster_changed(self, cluster: str, key: Key | None) -> None:
        """A copy changed, or (None) the cluster comes or goes: that concerns all its jobs and all left-over copies."""
        if key is not None:
            self._work.mark(key)
            return
        worker = self._workers.get(cluster)
        for one in worker.copies if worker is not None else ():
            self._work.mark(one)
        for one, item in self._jobs.items.items():
            if _VIEW in item and item[_VIEW].offer.name in ("", cluster):
                self._offer_at.pop(item[_VIEW].uid, None)
                self._work.mark(one)

    def _all_keys(self) -> Iterator[Key]:
        """Of the hub's jobs, and of copies whose job may be gone."""
        yield from (key for key, item in self._jobs.items.items() if _VIEW in item)
        for worker in self._workers.all:
            yield from worker.copies

    def _hub_changed(self, change: Change) -> None:
        old, new = ((item or {}).get(_VIEW) for item in (change.old, change.new))
        if old is not None and (new is None or new.uid != old.uid):
            self._forget(change.key, old.uid)
        if old is not None or new is not None:
            self._work.mark(change.key)

    def _forget(self, key: Key, uid: str) -> None:
        self._answers.pop(key, None)
        self._offer_at.pop(uid, None)
        self._move_at.pop(uid, None)
        self._asked.discard(uid)
        self._actions.forget(uid)
        self._offers.forget(uid)

    def _decided(self, wish: Wish, answer: Placed) -> None:
        self._asked.discard(wish.job.uid)
        job = (self._jobs.get(*wish.key) or {}).get(_VIEW)
        if job is not None and job.uid == wish.job.uid:
            self._answers[wish.key] = wish, answer
            self._work.mark(wish.key)

    async def _look_again(self) -> None:
        """Time passes too: for jobs in clusters that are away, and for those that have waited for long. All others have
        their turn now and then, should an event never have come."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for key in self._turns.next():
                self._work.mark(key)
            for key, item in self._jobs.items.items():
                job: HubJob | None = item.get(_VIEW)
                if job is None or job.finished or not job.offer.name:
                    continue
                if not self._seen(key, job).reachable or self._reconsidered(key, job):
                    self._work.mark(key)

    async def _look(self, key: Key) -> None:
        try:
            await self._steps(key)
        except Refused:
            self._work.later(key, _CONFLICT_SECONDS)
        except Again as again:
            self._work.later(key, again.seconds)
        except Conflict:
            self._work.later(key, _CONFLICT_SECONDS)  # the watch brings what has changed
        except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            _LOG.warning("%s/%s: %s", *key, error)
            self._work.later(key, _ERROR_SECONDS)
        except Exception:  # noqa: BLE001 - one job's trouble is not another's
            _LOG.exception("%s/%s", *key)
            self._work.later(key, _ERROR_SECONDS)
        finally:
            self._work.done(key)

    async def _steps(self, key: Key) -> None:
        item = self._jobs.get(*key)
        job: HubJob | None = item.get(_VIEW) if item is not None else None
        if job is not None:
            job = await self._known(key, job)
        await self._sweep(key, job)
        for _ in range(_STEPS):
            if job is None:
                return
            job = await self._step(key, job)

    async def _known(self, key: Key, job: HubJob) -> HubJob:
        """The job, with the offer of a copy that it does not know of."""
        copies = {one.name: copy for one in self._workers.all if one.reachable and (copy := one.copy(key)) is not None}
        cluster = unknown_copy(job, copies)
        return job if cluster is None else await self._actions.take_over(key, job, cluster, copies[cluster])

    async def _step(self, key: Key, job: HubJob) -> HubJob | None:
        """One step; the job as it is then, or None if the next change shows it."""
        if self._fence.refused and not (job.deleting or job.finished):
            await self._actions.refuse(key, job, self._fence.refused)
            return None
        seen = self._seen(key, job)
        step = next_step(job, seen, away_s=self._away_s)
        if step is Step.CHOOSE or (step is Step.TELL and self._reconsidered(key, job)):
            offered = await self._choose(key, job, seen)
            if offered is not None or not job.offer.name:
                return offered
            step = Step.TELL  # while it waits for an answer, and where it stays
        return await self._actions.carry_out(step, key, job, seen, self._workers.get(job.offer.name))

    def _seen(self, key: Key, job: HubJob) -> Seen:
        worker = self._workers.get(job.offer.name)
        if worker is None:
            return Seen(reachable=False, away_s=self._workers.missing_s(job.offer.name))
        return Seen(worker.reachable, worker.unreachable_s, worker.copy(key), worker.answers)

    def _reconsidered(self, key: Key, job: HubJob) -> bool:
        """Whether it is time to offer the waiting job to another cluster, or that has just been decided."""
        waits = bool(job.offer.name) and not (job.offer.fixed or job.suspended or job.deleting or job.finished)
        due = self._move_at.setdefault(job.uid, self._clock() + self._reconsider_s)
        return waits and (key in self._answers or due < self._clock())

    async def _choose(self, key: Key, job: HubJob, seen: Seen) -> HubJob | None:
        """Carry out what was decided for the job as it is, or ask for a decision."""
        wish, answer = self._answers.pop(key, (None, None))
        if wish is not None and answer is not None and (wish.job.uid, wish.job.offer) == (job.uid, job.offer):
            return await self._carry_out(key, job, answer)
        if not seen.reachable and (left := self._offer_at.get(job.uid, 0.0) - self._clock()) > 0:
            raise Again(left)
        if job.uid not in self._asked:
            self._asked.add(job.uid)
            self._offers.want(Wish(key, job, self._actions.refusals(job)))
        return None

    async def _carry_out(self, key: Key, job: HubJob, answer: Placed) -> HubJob | None:
        if not answer.reached:
            tells = bool(answer.problems) and not job.offer.name
            written = await self._actions.offer(key, job, answer) if tells else None
            self._asked.add(job.uid)
            self._offers.want(Wish(key, written or job, self._actions.refusals(job)))
            return written
        self._move_at[job.uid] = self._clock() + self._reconsider_s
        if answer.best is None:
            self._offer_at[job.uid] = self._clock() + NO_CLUSTER_SECONDS
        if job.offer.name and (answer.best is None or answer.best.cluster == job.offer.name):
            return None
        return await self._actions.offer(key, job, answer)

    async def _sweep(self, key: Key, job: HubJob | None) -> None:
        """Delete copies of offers that are over."""
        for worker in self._workers.all:
            copy = worker.copy(key)
            if copy is None or copy.deleting or not worker.reachable or not is_left_over(job, worker.name, copy):
                continue
            if is_left_over(await self._actions.read_hub_job(key), worker.name, copy):
                await self._actions.delete_copy(worker, key, copy)


def _trimmed(item: dict[str, Any]) -> dict[str, Any]:
    metadata = item["metadata"]
    kept = {field: metadata[field] for field in ("name", "namespace", "uid", "resourceVersion")}
    if not ours(item):
        return {"metadata": kept}
    try:
        return {"metadata": kept, _VIEW: read_hub_job(item)}
    except ValueError as error:
        _LOG.error("TrainingJob %s/%s is left alone: %s", kept["namespace"], kept["name"], error)
        return {"metadata": kept}
