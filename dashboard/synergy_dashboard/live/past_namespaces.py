"""The namespaces of the history, read again from time to time: the history forgets jobs after some time."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from synergy_dashboard.live.cluster import LiveCluster

MOST: Final = 2000
"""Namespaces without jobs, those of the newest jobs. A list asks for a user's rights in each of them."""
EVERY_S: Final = 3600.0
_LOG = logging.getLogger(__name__)


class PastNamespaces:
    """Keeps `live.past_namespaces`. `recorded` reads the history's, at most so many."""

    def __init__(self, live: LiveCluster, recorded: Callable[[int], set[str]]) -> None:
        self._live = live
        self._recorded = recorded

    async def read(self) -> None:
        """Read them now. Raises SQLAlchemyError."""
        self._live.set_recorded(await asyncio.to_thread(self._recorded, MOST))

    async def run(self, every_s: float = EVERY_S) -> None:
        """Read them again and again until cancelled. While the database is away, none is forgotten."""
        while True:
            await asyncio.sleep(every_s)
            try:
                await self.read()
            except SQLAlchemyError as error:
                _LOG.warning("the namespaces of the history: %s", error)
