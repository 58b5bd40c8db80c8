"""Progress in the status that another writer broke, written anew."""

import asyncio
import logging
from collections.abc import Callable, Iterable

from synergy_api.parts.progress import Progress
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.leases.progress_writer import ProgressWriter
from synergy_extender.leases.reports import repaired
from synergy_extender.metrics import Metrics
from synergy_kube import ApiError, Conflict

_LOG = logging.getLogger(__name__)


class ProgressRepair:
    """Writes what `leases.reports.repaired` finds."""

    def __init__(self, writer: ProgressWriter, metrics: Metrics, leading: Callable[[], bool]) -> None:
        self._writer = writer
        self._metrics = metrics
        self._leading = leading
        self._sound: dict[Key, JobView] = {}
        """Jobs in which there was nothing to repair."""

    async def repair(self, jobs: Iterable[JobView]) -> None:
        """Repair the jobs' progress while this replica leads."""
        for job, progress in await asyncio.to_thread(self._broken, list(jobs)):
            if self._leading():
                await self._write(job, progress)

    def _broken(self, jobs: Iterable[JobView]) -> list[tuple[JobView, Progress]]:
        """Milliseconds for thousands of jobs."""
        known, self._sound = self._sound, {}
        broken = []
        for job in jobs:
            progress = None if known.get(job.key) is job else repaired(job)
            if progress is None:
                self._sound[job.key] = job
            else:
                broken.append((job, progress))
        return broken

    async def _write(self, job: JobView, progress: Progress) -> None:
        """The next pass tries again if another writer changed the job meanwhile, or the API server refuses."""
        try:
            await self._writer.apply(job, progress)
        except Conflict:
            return
        except ApiError as error:
            self._metrics.writes.refused.labels(str(error.code)).inc()
            _LOG.warning("the progress of %s is refused: %s", job.key, error)
