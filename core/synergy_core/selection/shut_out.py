"""Waiting jobs that their quotas leave no room for, whatever a plan does."""

from collections.abc import Mapping
from dataclasses import dataclass

from synergy_core.model.reasons import Reason
from synergy_core.model.snapshot import Job, Snapshot
from synergy_core.selection.diagnosis import never
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.quotas import QuotaLedger, Quotas
from synergy_core.selection.scheduling_queue import JobInfos


@dataclass(frozen=True, slots=True)
class ShutOut:
    """A job that its quotas shut out."""

    job: Job
    reason: Reason
    facts: Mapping[str, str]
    """Name and numbers of the quota."""


def shut_out(snapshot: Snapshot, quotas: Quotas, infos: JobInfos) -> dict[str, ShutOut]:
    """The jobs that are shut out, by name."""
    found: dict[str, ShutOut] = {}
    pools = infos.pools
    for job in snapshot.jobs if snapshot.quotas else ():
        if job.running is not None or not job.quotas:
            continue
        entry = QueueEntry(infos.info(job))
        if not quotas.shut_out(entry, pools):
            continue
        ledger = QuotaLedger(quotas)
        allowed = next(pool for pool in pools if entry.may_use(pool))
        ledger.note_full(entry, quotas.least_of_newcomer(entry, allowed))
        found[job.name] = ShutOut(job, never(entry, pools) or Reason.QUOTA_FULL, ledger.full[job.name])
    return found
