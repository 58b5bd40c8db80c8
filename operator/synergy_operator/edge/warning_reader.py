"""Reads the newest warnings of pods and profile Jobs, at little cost for the API server.

The API server has no index of events: each question makes it read all events of the namespace from etcd, tens of
thousands where many jobs run. A cluster that is slow for a moment has many pods that make no progress: a question for
each of them would keep it slow. So one read answers all questions of a namespace, and reads follow one another slowly.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import aiohttp

from synergy_kube import ApiError, KubeClient
from synergy_kube.resources import EVENTS
from synergy_operator.edge.caches.pod_events import PodEventCache
from synergy_operator.views.metadata import Key

_LOG = logging.getLogger(__name__)
IDLE: Final = 20.0
"""Between two reads of a namespace pass so many times the seconds of the last one, and 300 s at most."""
ALL_IDLE: Final = 4.0
"""The same between reads of any namespaces, and 20 s at most."""
_LEAST_PAUSE_S: Final = 0.2
_MOST_PAUSE_S: Final = 300.0
_MOST_PAUSE_OF_ALL_S: Final = 20.0
_SELECTOR: Final = "type=Warning"


class WarningReader:
    """Answers questions for warnings later, one namespace after the other, and wakes the jobs that have a new one.

    Where one namespace has so many events that reading them is slow, jobs of others wait for that read, and 20 s.
    """

    def __init__(
        self, client: KubeClient, pod_events: PodEventCache, *, clock: Callable[[], float], wake: Callable[[Key], None]
    ) -> None:
        """`clock` gives Unix time."""
        self._client = client
        self._pod_events = pod_events
        self._clock = clock
        self._wake = wake
        self._questions: dict[str, dict[str, Key]] = {}
        self._rests_until: dict[str, float] = {}
        self._some = asyncio.Event()

    def ask(self, job: Key, uid: str) -> None:
        """The newest warning of the object with this uid, which is the job's, is wanted."""
        self._pod_events.asked(job, uid, self._clock())
        self._questions.setdefault(job[0], {})[uid] = job
        self._some.set()

    async def run(self) -> None:
        """Answer until cancelled. What could not be read is asked for again by those who still want it."""
        now = asyncio.get_running_loop().time
        while True:
            namespace = await self._next()
            questions = self._questions.pop(namespace)
            begun = now()
            try:
                self._answer(questions, await self._newest(namespace, questions))
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
                _LOG.warning("the events of namespace %s cannot be read: %s", namespace, error)
            took = now() - begun
            self._rests_until[namespace] = now() + _pause(IDLE * took, _MOST_PAUSE_S)
            await asyncio.sleep(_pause(ALL_IDLE * took, _MOST_PAUSE_OF_ALL_S))

    async def _next(self) -> str:
        """The namespace that asked first of those whose pause has ended, as soon as there is one."""
        now = asyncio.get_running_loop().time
        while True:
            self._rests_until = {name: until for name, until in self._rests_until.items() if until > now()}
            self._some.clear()
            rests = {namespace: self._rests_until.get(namespace, 0.0) for namespace in self._questions}
            namespace = min(rests, key=rests.__getitem__, default=None)
            if namespace is not None and rests[namespace] <= now():
                return namespace
            with suppress(TimeoutError):
                async with asyncio.timeout_at(None if namespace is None else rests[namespace]):
                    await self._some.wait()

    async def _newest(self, namespace: str, wanted: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """The newest warning of each object, by uid."""
        newest: dict[str, Mapping[str, Any]] = {}
        uids = set(wanted)
        async for page in self._client.pages(EVENTS, namespace, field_selector=_SELECTOR):
            for event in page:
                uid = str((event.get("involvedObject") or {}).get("uid"))
                if uid in uids and _last_seen(event) >= _last_seen(newest.get(uid, {})):
                    newest[uid] = event
        return newest

    def _answer(self, questions: Mapping[str, Key], newest: Mapping[str, Mapping[str, Any]]) -> None:
        now = self._clock()
        for uid, job in questions.items():
            event = newest.get(uid, {})
            reason, message = (str(event.get(name) or "") for name in ("reason", "message"))
            if self._pod_events.answer(job, uid, reason, message, now):
                self._wake(job)


def _pause(seconds: float, most: float) -> float:
    return min(max(_LEAST_PAUSE_S, seconds), most)


def _last_seen(event: Mapping[str, Any]) -> str:
    """The last time of an event. RFC 3339 times in UTC sort as text."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return max((str(time) for time in times if time), default="")
