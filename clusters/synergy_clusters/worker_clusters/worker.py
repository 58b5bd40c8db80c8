"""One worker cluster: the copies of this hub's jobs there, and whether it can be reached."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

import aiohttp

from synergy_api.names import LABEL_HUB
from synergy_clusters.forecast.look import Observer
from synergy_clusters.views import Copy, Key, read_copy
from synergy_kube import ApiError, Change, KubeClient, Reflector
from synergy_kube.resources import TRAINING_JOBS

_LOG = logging.getLogger(__name__)
_VIEW: Final = "view"
_ASK_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 5.0
SILENT_SECONDS: Final = 8.0
"""Without an answer for so long, a cluster cannot be reached."""


class Worker:
    """Follows one cluster until cancelled. `on_change` gets the key of each copy that changes, or None if the cluster
    can be reached again or no longer."""

    def __init__(self, name: str, client: KubeClient, hub: str, on_change: Callable[[Key | None], None]) -> None:
        self.name = name
        self.client = client
        self.observer = Observer(client)
        self._on_change = on_change
        self._selector = f"{LABEL_HUB}={hub}"
        self._copies = Reflector(
            client, TRAINING_JOBS, label_selector=self._selector, trim=_trimmed, on_change=self._changed
        )
        self._answered = time.monotonic()
        self._ever = False
        self._told = False
        self._since = time.monotonic()
        """When `_told` changed last."""
        self.claimed = False
        """Whether it has the hub's mark since it answers (`claims`)."""
        self.problem = ""
        """Why it has not."""

    @property
    def answers(self) -> bool:
        """Whether it answers, and its copies are known."""
        return self._ever and self._copies.synced.is_set() and self.away_s < SILENT_SECONDS

    @property
    def reachable(self) -> bool:
        """Whether it answers, and this hub may act there."""
        return self.answers and self.claimed

    def claim(self, problem: str = "") -> None:
        """It has the hub's mark, or could not get it."""
        self.claimed, self.problem = not problem, problem
        self._tell()

    @property
    def away_s(self) -> float:
        """Seconds since its last answer; before the first one, since this process began to ask."""
        return time.monotonic() - self._answered

    @property
    def unreachable_s(self) -> float:
        """Seconds since this hub could last act there, because of silence or because the mark was not taken."""
        return 0.0 if self.reachable else max(self.away_s, 0.0 if self._told else time.monotonic() - self._since)

    @property
    def copies(self) -> dict[Key, Copy]:
        """All copies by key."""
        return {key: item[_VIEW] for key, item in self._copies.items.items()}

    def copy(self, key: Key) -> Copy | None:
        """The copy of one job."""
        item = self._copies.get(*key)
        return item[_VIEW] if item is not None else None

    async def run(self) -> None:
        """Follow it, and ask it now and then whether it is there."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._copies.run())
            group.create_task(self._ask())

    async def _ask(self) -> None:
        while True:
            await self._ask_once()
            await asyncio.sleep(_ASK_SECONDS)

    async def _ask_once(self) -> None:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self.client.page(TRAINING_JOBS, label_selector=self._selector, most=1)
        except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            _LOG.warning("cluster %s: %s", self.name, error)
        else:
            # others look at other times: while this answer was awaited they may have seen it silent for too long
            self._told = self._told and self.reachable
            self._answered, self._ever = time.monotonic(), True
        self._tell()

    def _tell(self) -> None:
        if not self.answers:
            self.claimed, self.problem = False, ""  # until it is back, another controller may act there
        if self.reachable != self._told:
            self._told, self._since = self.reachable, time.monotonic()
            _LOG.info("cluster %s can %s be reached", self.name, "now" if self._told else "no longer")
            self._on_change(None)

    def _changed(self, change: Change) -> None:
        self._on_change(change.key)


def _trimmed(item: dict[str, Any]) -> dict[str, Any]:
    metadata = item["metadata"]
    kept = {field: metadata[field] for field in ("name", "namespace", "uid", "resourceVersion")}
    return {"metadata": kept, _VIEW: read_copy(item)}
