"""Rounds of offers: look at all worker clusters, forecast, and say which one gets each job."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp

from synergy_clusters.copies import manifest
from synergy_clusters.forecast.look import Future, NoForecastError
from synergy_clusters.forecast.process import placed
from synergy_clusters.forecast.prospects import Asked, Placed, Question
from synergy_clusters.views import HubJob, Key
from synergy_clusters.worker_clusters.worker import Worker
from synergy_kube import ApiError

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 60.0
_GATHER_SECONDS: Final = 0.2
"""Jobs that come together are offered in one round."""
_MOST: Final = 200
"""Jobs of one round."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A job to offer. `but` has the clusters that refused it, each with its reason."""

    key: Key
    job: HubJob
    but: Mapping[str, str]


class Offers:
    """Makes one round after the other. `workers` are the clusters, `decided` gets each answer."""

    def __init__(self, workers: Callable[[], Iterable[Worker]], decided: Callable[[Wish, Placed], None]) -> None:
        self._workers = workers
        self._decided = decided
        self._wishes: dict[Key, Wish] = {}
        self._some = asyncio.Event()

    def want(self, wish: Wish) -> None:
        """Let the job be part of the next round."""
        self._wishes[wish.key] = wish
        self._some.set()

    async def run(self) -> None:
        """Make rounds until cancelled. As much time passes between two of them as the last one took."""
        while True:
            await self._some.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            begun = time.monotonic()
            oldest = sorted(self._wishes.values(), key=_age)[:_MOST]
            for wish in oldest:
                del self._wishes[wish.key]
            if not self._wishes:
                self._some.clear()
            try:
                answers = await self._round(oldest)
            except Exception:  # noqa: BLE001 - whatever it is, the next round is another
                _LOG.exception("a round of offers failed")
                answers = {}
            for wish in oldest:
                unknown = Placed(None, {"forecast": "it failed; the log of the controller has the reason"})
                self._decided(wish, answers.get(_name(wish), unknown))
            await asyncio.sleep(time.monotonic() - begun)

    async def _round(self, wishes: list[Wish]) -> dict[str, Placed]:
        workers = list(self._workers())
        looked = await asyncio.gather(*(self._look(worker, wishes) for worker in workers))
        futures: dict[str, Future] = {}
        away: dict[str, str] = {}
        for worker, found in zip(workers, looked, strict=True):
            if isinstance(found, Future):
                futures[worker.name] = found
            else:
                away[worker.name] = found
        asked = [
            Asked(
                _name(wish),
                {
                    name: future.jobs[_name(wish)]
                    for name, future in futures.items()
                    if _name(wish) in future.jobs and name not in wish.but
                },
                wish.job.offer.name,
            )
            for wish in wishes
        ]
        clusters = {name: (future.snapshot, future.config) for name, future in futures.items()}
        answers = await placed(Question(clusters, asked, time.time()))
        for wish in wishes:
            own = {name: one.problems[_name(wish)] for name, one in futures.items() if _name(wish) in one.problems}
            answer = answers[_name(wish)]
            answers[_name(wish)] = Placed(answer.best, {**away, **own, **answer.problems, **wish.but}, answer.reached)
        return answers

    async def _look(self, worker: Worker, wishes: list[Wish]) -> Future | str:
        """The cluster's future, or why there is none."""
        if not worker.reachable:
            return worker.problem or "it cannot be reached"
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                look = await worker.observer.look()
            new = [manifest(wish.job, "", 0) for wish in wishes if wish.job.offer.name != worker.name]
            return await asyncio.to_thread(look.with_jobs, new)
        except NoForecastError as error:
            return str(error)
        except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"it cannot be read: {error}"


def _name(wish: Wish) -> str:
    return "/".join(wish.key)


def _age(wish: Wish) -> tuple[str, Key]:
    return str(wish.job.item["metadata"]["creationTimestamp"]), wish.key
