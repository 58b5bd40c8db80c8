"""The time to live of a finished job."""

from synergy_api.timestamps import parse_time
from synergy_operator.views.job import JobView


def seconds_left(job: JobView, now: float) -> float | None:
    """Seconds until the finished job is deleted, 0 if that is due; None if it stays."""
    if job.spec is None or job.spec.ttl_seconds_after_finished is None or job.status.completion_time is None:
        return None
    return max(0.0, parse_time(job.status.completion_time) + job.spec.ttl_seconds_after_finished - now)
