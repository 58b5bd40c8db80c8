"""The service that the cluster's finished jobs needed: counted once each, even if a leader stops in between. Pure.

The histogram is in the status of the SchedulingPolicy in force. The note that a job is counted is in the job's own
status. No write changes both. So a job is counted in one update of the policy together with its UID; then the job's
status is written; then, when it is seen to know, its UID is dropped. The policy's update depends on the object's
version: two leaders cannot both count.
"""

from collections.abc import Collection, Iterable

from synergy_api.parts.queues import PackRules, Queues, ServiceHistory
from synergy_api.resources.training_job import FINISHED
from synergy_core.model.service_sketch import counted, samples
from synergy_core.throughput.pack_limit import learned_pack_limit
from synergy_extender.cluster.placements import Sizes, spread_speed
from synergy_extender.cluster.run_state import service_of
from synergy_extender.cluster.views import JobView
from synergy_extender.snapshot.scheduling_record import marks_of

PENDING_AT_ONCE = 256
LEARN_FROM = 100
"""Jobs that must have finished before thresholds are learned from them, or `2d-gittins` goes by their service."""
_EMPTY = ServiceHistory()
_NO_RULES = PackRules()
_NO_SIZES: Sizes = {}


def is_over(job: JobView) -> bool:
    """Whether the job's service is all that it ever needed: it is finished, and has had some."""
    return job.status.phase in FINISHED and service_of(job).attained_gpu_seconds > 0.0


def updated(
    before: ServiceHistory | None,
    jobs: Collection[JobView],
    queues: Queues,
    packing: PackRules = _NO_RULES,
    sizes: Sizes = _NO_SIZES,
) -> ServiceHistory | None:
    """The history with jobs that have finished since, and without the UIDs of those that know; None where none is.

    `sizes` are those of the cluster's nodes: they show which measured placements had the fewest nodes.
    """
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
        learned_pack_limit_percent=_learned_limit(known, jobs, sizes) if packing.learn_pack_limit else None,
    )
    if fresh or _wants_others(after, queues):
        after = after.model_copy(update={"learned_thresholds_gpu_seconds": _learned(after, queues)})
    return None if after == _EMPTY else after


def service_samples(history: ServiceHistory | None) -> tuple[float, ...]:
    """The finished jobs' service as the planner takes it, GPU-seconds; none before enough have finished.

    A distribution of few jobs says that a job with more service than all of them will never end.
    """
    if history is None or history.jobs < LEARN_FROM:
        return ()
    return samples(dict(zip(history.buckets, history.counts, strict=True)))


def thresholds(queues: Queues, history: ServiceHistory | None) -> tuple[float, ...]:
    """The thresholds in force: the written ones, or as many that were learned."""
    learned = history.learned_thresholds_gpu_seconds if queues.learn_thresholds and history is not None else []
    return tuple(learned if len(learned) == len(queues.thresholds_gpu_seconds) else queues.thresholds_gpu_seconds)


def pack_limit(packing: PackRules, history: ServiceHistory | None) -> float | None:
    """PACKLIMIT in force: the learned one if it is wanted and there is one, else the written one; None for none."""
    learned = history.learned_pack_limit_percent if packing.learn_pack_limit and history is not None else None
    percent = packing.pack_limit_percent if learned is None else learned
    return None if percent is None else percent / 100.0


def _learned_limit(history: ServiceHistory, jobs: Iterable[JobView], sizes: Sizes) -> float | None:
    """From the jobs that are there; what was learned from earlier ones stays until these teach something."""
    told = [(job.spec.gpus, job.status.progress) for job in jobs if job.status.progress is not None]
    measured = [
        (one.largest_tensor_bytes / one.model_bytes, speed)
        for gpus, one in told
        if one.model_bytes
        and one.largest_tensor_bytes
        and (speed := spread_speed(one.placements, gpus, sizes)) is not None
    ]
    limit = learned_pack_limit(measured)
    return history.learned_pack_limit_percent if limit is None else round(limit * 100.0, 1)


def _wants_others(history: ServiceHistory, queues: Queues) -> bool:
    wanted = len(queues.thresholds_gpu_seconds) if queues.learn_thresholds else 0
    return len(history.learned_thresholds_gpu_seconds) != wanted and (history.jobs >= LEARN_FROM or wanted == 0)


def _learned(history: ServiceHistory, queues: Queues) -> list[float]:
    if not queues.learn_thresholds or not queues.thresholds_gpu_seconds or history.jobs < LEARN_FROM:
        return []
    # policies need numpy, 20 MB that an extender whose planner is a process of its own does without
    from synergy_core.policies.discretised.learned_thresholds import learned_thresholds  # noqa: PLC0415

    return list(learned_thresholds(service_samples(history), len(queues.thresholds_gpu_seconds) + 1) or ())
