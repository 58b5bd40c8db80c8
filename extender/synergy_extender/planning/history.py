"""The service that the cluster's finished jobs needed: counted once each, whoever stops when. Pure.

The histogram stands in the status of the SchedulingPolicy in force, the note that a job is in it in the job's own
status, and no write touches both. So a job is counted in one update of the policy together with its UID; then the job
is told; then, when it is seen to know, its UID is dropped. The policy's update rests on the object's version, so that
two leaders cannot both count.
"""

from collections.abc import Iterable

from synergy_api.queues import Queues, ServiceHistory
from synergy_api.training_job import FINISHED
from synergy_core.policies.learned_thresholds import learned_thresholds
from synergy_core.policies.service_sketch import counted, samples
from synergy_extender.cluster.views import JobView
from synergy_extender.planning.marks import marks_of
from synergy_extender.planning.standing import service_of

PENDING_AT_ONCE = 256
LEARN_FROM = 100
"""Jobs that must have finished before thresholds are learned from them."""
_EMPTY = ServiceHistory()


def is_over(job: JobView) -> bool:
    """Whether the job's service is all that it ever needed: it is finished, and has had some."""
    return job.status.phase in FINISHED and service_of(job).attained_gpu_seconds > 0.0


def updated(before: ServiceHistory | None, jobs: Iterable[JobView], queues: Queues) -> ServiceHistory | None:
    """The history with jobs that have finished since, and without the UIDs of those that know; None where none is."""
    known = before or _EMPTY
    over = sorted((job for job in jobs if is_over(job)), key=lambda job: job.uid)
    untold = {job.uid for job in over if not marks_of(job).counted}
    pending = [uid for uid in known.pending if uid in untold]
    fresh = [job for job in over if job.uid in untold and job.uid not in pending][: PENDING_AT_ONCE - len(pending)]
    before_counts = dict(zip(known.buckets, known.counts, strict=True))
    counts = counted(before_counts, (service_of(job).attained_gpu_seconds for job in fresh))
    after = ServiceHistory(
        jobs=known.jobs + len(fresh),
        buckets=list(counts),
        counts=list(counts.values()),
        pending=[*pending, *(job.uid for job in fresh)],
        learned_thresholds_gpu_seconds=known.learned_thresholds_gpu_seconds,
    )
    if fresh or _wants_others(after, queues):
        after = after.model_copy(update={"learned_thresholds_gpu_seconds": _learned(after, queues)})
    return None if after == _EMPTY else after


def service_samples(history: ServiceHistory | None) -> tuple[float, ...]:
    """The finished jobs' service as the planner takes it, GPU-seconds."""
    return () if history is None else samples(dict(zip(history.buckets, history.counts, strict=True)))


def thresholds(queues: Queues, history: ServiceHistory | None) -> tuple[float, ...]:
    """The thresholds in force: the written ones, or as many that were learned."""
    learned = history.learned_thresholds_gpu_seconds if queues.learn_thresholds and history is not None else []
    return tuple(learned if len(learned) == len(queues.thresholds_gpu_seconds) else queues.thresholds_gpu_seconds)


def _wants_others(history: ServiceHistory, queues: Queues) -> bool:
    wanted = len(queues.thresholds_gpu_seconds) if queues.learn_thresholds else 0
    return len(history.learned_thresholds_gpu_seconds) != wanted and (history.jobs >= LEARN_FROM or wanted == 0)


def _learned(history: ServiceHistory, queues: Queues) -> list[float]:
    if not queues.learn_thresholds or not queues.thresholds_gpu_seconds or history.jobs < LEARN_FROM:
        return []
    return list(learned_thresholds(service_samples(history), len(queues.thresholds_gpu_seconds) + 1) or ())
