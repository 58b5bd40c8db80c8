"""Rounds of offers: look at all worker clusters, forecast, and say which one gets each job."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Final

import aiohttp

from synergy_clusters.choice import Prospect, least_wanted
from synergy_clusters.copies import manifest
from synergy_clusters.forecast.left_out import LEFT_OUT_SECONDS, LeftOut
from synergy_clusters.forecast.look import Future, NoForecastError
from synergy_clusters.forecast.process import Answers, placed
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
    """Makes one round after the other. `workers` are the clusters, `decided` gets each answer, `clock` gives Unix time.

    A job or a cluster at which the process of forecasts ended is left out of forecasts for a while. Such a job gets a
    cluster without a forecast. Such a cluster gets only jobs that start in no cluster with a forecast.
    """

    def __init__(
        self,
        workers: Callable[[], Iterable[Worker]],
        decided: Callable[[Wish, Placed], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._workers = workers
        self._decided = decided
        self._clock = clock
        self._wishes: dict[Key, Wish] = {}
        self._some = asyncio.Event()
        self._left_out = LeftOut()

    def want(self, wish: Wish) -> None:
        """Let the job be part of the next round."""
        self._wishes[wish.key] = wish
        self._some.set()

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._left_out.forget(uid)

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
        looked = list(zip(workers, await asyncio.gather(*(self._look(one, wishes) for one in workers)), strict=True))
        futures = {worker.name: found for worker, found in looked if isinstance(found, Future)}
        away = {worker.name: found for worker, found in looked if isinstance(found, str)}
        now = self._clock()
        without = {name: why for name, why in self._left_out.clusters(now).items() if name in futures}
        whys = {_name(wish): why for wish in wishes if (why := self._left_out.why_not(wish.job, now))}
        # no job leaves a cluster that answers for want of a forecast: it may start there soon
        answering = {worker.name for worker in workers if worker.reachable}
        staying = answering & (away.keys() | without.keys())
        known = {name: future for name, future in futures.items() if name not in without}
        asked = [
            _asked(wish, known) for wish in wishes if wish.job.offer.name not in staying and _name(wish) not in whys
        ]
        clusters = {name: (future.snapshot, future.config) for name, future in known.items()}
        try:
            answers = await placed(Question(clusters, asked, now))
        except NoForecastError as error:
            _LOG.error("a round of offers has no forecast: %s", error)
            answers, without = Answers({}), {**without, **dict.fromkeys(known, str(error))}
        if answers.ended_at:
            self._leave_out(answers, wishes)
        told: dict[str, Placed] = {}
        unknown: dict[str, Mapping[str, str]] = {}
        for wish in wishes:
            name = _name(wish)
            unknown[name] = {**dict.fromkeys(futures, whys[name]), **without} if name in whys else without
            told[name] = _completed(wish, answers.placed.get(name, Placed(None)), futures, {**away, **unknown[name]})
        nowhere = [wish for wish in wishes if wish.job.offer.name not in answering]
        return {**told, **_without_forecast(nowhere, told, futures, unknown)}

    def _leave_out(self, answers: Answers, wishes: Iterable[Wish]) -> None:
        cluster, by = answers.ended_at, answers.ended_by
        job = next((wish.job for wish in wishes if _name(wish) == by), None)
        whole = self._left_out.add(cluster, job, answers.why, self._clock())
        what = f"cluster {cluster}" if whole else f"job {by}"
        at = f"{by} in cluster {cluster}" if by else f"reading cluster {cluster}"
        _LOG.error("%s is not forecast for %d s: %s (%s)", what, LEFT_OUT_SECONDS, answers.why, at)

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
        except Exception as error:  # noqa: BLE001 - the other clusters may have the jobs
            _LOG.exception("cluster %s", worker.name)
            return f"it cannot be looked at: {error!r}"


def _asked(wish: Wish, futures: Mapping[str, Future]) -> Asked:
    name = _name(wish)
    seen_as = {
        cluster: future.jobs[name]
        for cluster, future in futures.items()
        if name in future.jobs and cluster not in wish.but
    }
    return Asked(name, seen_as, wish.job.offer.name)


def _completed(wish: Wish, answer: Placed, futures: Mapping[str, Future], away: Mapping[str, str]) -> Placed:
    """The answer with what is known of the clusters without it."""
    if not answer.reached:
        return answer
    name = _name(wish)
    own = {cluster: future.problems[name] for cluster, future in futures.items() if name in future.problems}
    return Placed(answer.best, {**away, **own, **answer.problems, **wish.but})


def _without_forecast(
    wishes: Iterable[Wish],
    answers: Mapping[str, Placed],
    futures: Mapping[str, Future],
    unknown: Mapping[str, Mapping[str, str]],
) -> dict[str, Placed]:
    """The answers for jobs that start in no cluster by forecast: each gets one of those that are `unknown` for it, with
    the reason. Better there than nowhere: a job that waits there may move once there is a forecast."""
    found: dict[str, Placed] = {}
    offered: dict[str, int] = {}
    for wish in wishes:
        name, answer = _name(wish), answers[_name(wish)]
        cluster = answer.best.cluster if answer.best is not None else ""
        if answer.best is None and answer.reached:
            taken_by = {one: futures[one] for one in unknown[name] if name in futures[one].jobs and one not in wish.but}
            cluster = least_wanted({key: (one.jobs[name], one.snapshot) for key, one in taken_by.items()}, offered)
            if cluster:
                found[name] = replace(answer, best=Prospect(inf, inf, cluster))
        if cluster and name in futures[cluster].jobs:
            offered[cluster] = offered.get(cluster, 0) + futures[cluster].jobs[name].gpus
    return found


def _name(wish: Wish) -> str:
    return "/".join(wish.key)


def _age(wish: Wish) -> tuple[str, Key]:
    return str(wish.job.item["metadata"]["creationTimestamp"]), wish.key
