"""How long its user held a job. Policies that depend on waiting time must not count it."""

from synergy_api.parts.service import ServiceStatus
from synergy_api.resources.training_job import Phase
from synergy_api.timestamps import format_time, parse_time


def with_suspension(service: ServiceStatus, phase: Phase, now: float) -> ServiceStatus:
    """The accounting with the start of a suspension while it lasts, and with its duration after it.

    Both are part of the write that changes the phase, so a crash does not count a suspension twice or lose it.
    """
    since = service.suspended_since
    if (phase == "Suspended") == (since is not None):
        return service
    if since is None:
        return service.model_copy(update={"suspended_since": format_time(now)})
    seconds = service.suspended_seconds + max(0.0, now - parse_time(since))
    return service.model_copy(update={"suspended_since": None, "suspended_seconds": round(seconds, 3)})
