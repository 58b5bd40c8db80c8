"""For how long a job was held by its user: nobody waits meanwhile. Owed to policies that go by how long a job waits."""

from synergy_api.timestamps import format_time, parse_time
from synergy_api.training_job import Phase, ServiceStatus


def with_suspension(service: ServiceStatus, phase: Phase, now: float) -> ServiceStatus:
    """The books with the begin of a suspension while one lasts, and its seconds once it is over.

    Both are written in the update that writes the phase, so that no crash counts it twice or forgets it.
    """
    since = service.suspended_since
    if (phase == "Suspended") == (since is not None):
        return service
    if since is None:
        return service.model_copy(update={"suspended_since": format_time(now)})
    seconds = service.suspended_seconds + max(0.0, now - parse_time(since))
    return service.model_copy(update={"suspended_since": None, "suspended_seconds": round(seconds, 3)})
