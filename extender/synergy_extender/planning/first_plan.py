"""A lead's first plan is made while the API server is asked what the old leader wrote last."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.views import JobView, Key


class Refresh:
    """For one lead: the question which jobs have changed, until it has been answered."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._before: Mapping[Key, JobView] = {}
        self._asked: asyncio.Future[None] | None = None
        self.answered = False
        """The cache has what the answer told, so passes are like any others."""

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """The question is asked beside a pass, for as long as this holds.

        Only the first time. While the API server fails, each try would make a plan for nothing: from the second one on
        the answer comes first. Raises what asking raises.
        """
        if self._asked is not None and not self.answered:
            await self._cache.refresh_jobs()
            self.answered = True
        if self.answered:
            yield
            return
        self._before = dict(self._cache.jobs)
        self._asked = asyncio.ensure_future(self._cache.refresh_jobs())
        try:
            yield
        finally:
            self._asked.cancel()
            await asyncio.gather(self._asked, return_exceptions=True)

    async def finds_other_places(self) -> bool:
        """Whether a job has another place than before the question: a plan begun before is of a cluster that is not
        there any more. Waits for the answer, and raises what asking raises."""
        if self._asked is not None:
            await self._asked
        self.answered = True
        return any(
            job is not self._before.get(key) and job.status.allocation != _place(self._before, key)
            for key, job in self._cache.jobs.items()
        )


def _place(jobs: Mapping[Key, JobView], key: Key) -> object:
    job = jobs.get(key)
    return job.status.allocation if job is not None else None
