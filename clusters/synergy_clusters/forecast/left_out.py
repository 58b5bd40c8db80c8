"""What is not forecast for a while because the process of forecasts ended at it: jobs, and clusters. Pure."""

from dataclasses import dataclass
from typing import Final

from synergy_api.timestamps import format_time
from synergy_clusters.views import HubJob

LEFT_OUT_SECONDS: Final = 600.0
SEVERAL: Final = 3
"""So many jobs at whose forecast in one cluster the process ended: the cluster is the reason, and not the jobs."""


@dataclass(frozen=True, slots=True)
class _Job:
    """At which cluster the process ended with the job, and until when the job is left out (Unix time)."""

    generation: int
    cluster: str
    until: float
    why: str


class LeftOut:
    """Times are Unix times. At most one job or cluster is added in a round, and each stays for `LEFT_OUT_SECONDS`."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        """By uid."""
        self._clusters: dict[str, tuple[float, str]] = {}
        """Until when the cluster is left out, and why."""

    def add(self, cluster: str, job: HubJob | None, why: str, now: float) -> bool:
        """Leave out the job, if the process ended at its forecast in the cluster. True if the cluster is left out too:
        the process was reading it, or has ended there at several jobs."""
        until = now + LEFT_OUT_SECONDS
        again = format_time(float(int(until)))
        self._jobs = {uid: one for uid, one in self._jobs.items() if now < one.until}
        if job is not None:
            words = f"{why} (this job in cluster {cluster}); the job is forecast again after {again}"
            self._jobs[job.uid] = _Job(job.generation, cluster, until, words)
            if sum(one.cluster == cluster for one in self._jobs.values()) < SEVERAL:
                return False
        self._clusters[cluster] = until, f"{why}; the cluster is asked again at {again}"
        return True

    def clusters(self, now: float) -> dict[str, str]:
        """The clusters that are left out, each with the reason."""
        return {name: why for name, (until, why) in self._clusters.items() if now < until}

    def why_not(self, job: HubJob, now: float) -> str:
        """Why the job is left out; empty if it is not. A job that has been changed since is not."""
        one = self._jobs.get(job.uid)
        return one.why if one is not None and now < one.until and one.generation == job.generation else ""

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._jobs.pop(uid, None)
