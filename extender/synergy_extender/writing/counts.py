"""What the leader counts of the changes that it wrote."""

from synergy_extender.cluster.revocation import rule_of
from synergy_extender.cluster.run_state import waiting_seconds
from synergy_extender.decisions.changes import StatusChange
from synergy_extender.metrics import Metrics


def count_change(metrics: Metrics, change: StatusChange, now: float) -> None:
    """Count a written change: a run that is revoked, or the first training run of a job that is admitted."""
    new = change.new_preemption
    if new is not None:
        metrics.planning.preemptions.labels(new.rule).inc()
    before, after = change.job.status.allocation, change.allocation
    if after is None:
        return
    was = before if before is not None and before.run == after.run else None
    if after.state == "Revoked" and was is not None and was.state == "Granted":
        metrics.planning.revocations.labels(rule_of(after.reason)).inc()
    first = after.purpose == "Train" and change.job.status.start_time is None
    if first and after.state == "Granted" and after.admitted and (was is None or not was.admitted):
        metrics.jobs.first_start.observe(waiting_seconds(change.job, now))
