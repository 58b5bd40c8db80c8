"""Waiting jobs that their quotas leave no room for, whatever a plan does."""

from collections.abc import Mapping
from dataclasses import dataclass

from synergy_core.model.reasons import Reason
from synergy_core.model.snapshot import Job, Snapshot
from synergy_core.selection.diagnosis import never
from synergy_core.selection.line import Contenders
from synergy_core.selection.quotas import QuotaLedger, Quotas


@dataclass(frozen=True, slots=True)
class ShutOut:
    """A job that its quotas shut out."""

    job: Job
    reason: Reason
    facts: Mapping[str, str]
    """Name and numbers of the quota."""


def shut_out(snapshot: Snapshot, quotas: Quotas, contenders: Contenders) -> dict[str, ShutOut]:
    """The jobs that are shut out, by name, in the order of the snapshot."""
    found: dict[str, ShutOut] = {}
    pools = contenders.pools
    for job in snapshot.jobs if snapshot.quotas else ():
        if job.running is not None or not job.quotas:
            continue
        contender = contenders.contender(job)
        if not quotas.shut_out(contender, pools):
            continue
        ledger = QuotaLedger(quotas)
        allowed = next(pool for pool in pools if contender.may_use(pool))
        ledger.note_full(contender, quotas.least_of_newcomer(contender, allowed))
        found[job.name] = ShutOut(job, never(contender, pools) or Reason.QUOTA_FULL, ledger.full[job.name])
    return found
