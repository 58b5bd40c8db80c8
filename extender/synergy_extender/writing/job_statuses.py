"""The leader's part of the jobs' statuses: what is written of a pass, in which order, and what is left."""

import time
from collections.abc import Callable, Iterable, Sequence

from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.views import JobView
from synergy_extender.decisions.changes import ChangeKind, StatusChange
from synergy_extender.decisions.writing_order import affordable
from synergy_extender.leader import Lead
from synergy_extender.leases.progress_writer import ProgressWriter
from synergy_extender.metrics import Metrics
from synergy_extender.writing.backlog import Backlog, Written
from synergy_extender.writing.progress_repair import ProgressRepair
from synergy_extender.writing.unwritten import Unwritten
from synergy_extender.writing.write_budget import WriteBudget
from synergy_extender.writing.writer import StatusWriter
from synergy_kube import KubeClient

ESTIMATES_PER_SECOND = 5.0
"""Estimates that are written for their own sake."""


class JobStatuses:
    """Writes decisions. `clock` gives Unix time."""

    def __init__(
        self, client: KubeClient, cache: ClusterCache, metrics: Metrics, *, lead: Lead, clock: Callable[[], float]
    ) -> None:
        self._metrics = metrics
        self._estimates = WriteBudget(ESTIMATES_PER_SECOND)
        self.unwritten = Unwritten(time.monotonic)
        writer = StatusWriter(
            client,
            lead=lead,
            observe=cache.observe,
            vanished=cache.vanished,
            metrics=metrics,
            unwritten=self.unwritten,
            clock=clock,
        )
        self._backlog = Backlog(writer.write, lambda: cache.arrivals)
        self._repair = ProgressRepair(ProgressWriter(client, cache.observe), metrics, lambda: lead.leading)

    def forget(self) -> None:
        """This replica begins to lead."""
        self._backlog.forget()

    async def write(self, changes: Sequence[StatusChange], arrivals: int, *, new_round: bool) -> tuple[Written, bool]:
        """Write all that runs depend on, and as many new reasons and positions as are no burden. `arrivals` is how many
        of them the pass knew of; `new_round` says that it planned a round. Also whether more than estimates is held
        back: the next pass finds it.

        Raises like StatusWriter.write.
        """
        chosen = affordable(changes, estimates=self._estimates.left)
        estimates = sum(change.kind is ChangeKind.ESTIMATE for change in chosen)
        self._estimates.spend(estimates)
        told = sum(change.kind is not ChangeKind.ESTIMATE for change in changes)
        written = await self._backlog.write(chosen, arrivals, new_round=new_round)
        self._metrics.writes.unwritten_jobs.set(len(self.unwritten))
        return written, len(chosen) - estimates < told

    async def repair(self, jobs: Iterable[JobView]) -> None:
        """Repair the jobs' progress where another writer broke it."""
        await self._repair.repair(jobs)
