"""What a store says of a job, in the form of an `Audit`."""

from itertools import pairwise
from typing import Any

from support.operator.job_life import Audit
from synergy_dashboard.store.store import Store

Json = dict[str, Any]


def told_of(store: Store, uid: str) -> Json:
    """Runs, resizes and waits without their times."""
    runs: dict[int, Json] = {}
    for run in store.runs_of(uid):
        assert run.run not in runs
        told: Json = {"gpu_type": run.gpu_type, "purpose": run.purpose, "cpu": sum(s.cpu_millis for s in run.shares)}
        told |= {"revoked": run.revoked_reason} if run.revoked_s is not None else {}
        told |= {"started": True} if run.started_s is not None else {}
        told |= {"outcome": run.outcome} if run.ended_s is not None else {}
        runs[run.run] = told
    resizes = [(one.run, sum(share.cpu_millis for share in one.shares)) for one in store.resizes_of(uid)]
    return {"runs": runs, "resizes": resizes, "waits": [one.reason for one in store.waits_of(uid)]}


def audited(audit: Audit) -> Json:
    """What the audit expects, in the same form."""
    return {"runs": audit.runs, "resizes": audit.resizes, "waits": audit.waits}


def check_times(store: Store, uid: str) -> None:
    """Nothing ends before it began, and nothing overlaps."""
    runs = [run for run in store.runs_of(uid) if run.seen]
    for run in runs:
        times = [run.granted_s, run.started_s, run.ended_s]
        known = [one for one in times if one is not None]
        assert known == sorted(known), run
    for earlier, later in pairwise(runs):
        assert earlier.ended_s is not None, (earlier, later)
        assert earlier.ended_s <= later.granted_s, (earlier, later)
    waits = store.waits_of(uid)
    for before, after in pairwise(waits):
        assert before.until_s is not None, (before, after)
        assert before.since_s <= before.until_s <= after.since_s, (before, after)
