"""What sharing a GPU costs a job in fact: measured from its reports, kept in its progress, passed to the planner.

Steps are counted between reports at which the job was seen on one GPU with the same others. This excludes the time
before a partner came, and the library's sliding window. Pure.
"""

from collections.abc import Mapping, Sequence

from synergy_api.parts.allocation import Allocation
from synergy_api.parts.progress import PlacementSpeed, Progress
from synergy_api.parts.sharing import GPUUsage, SharedSpeed
from synergy_api.timestamps import format_time, parse_time
from synergy_core.model import snapshot as core
from synergy_extender.cluster.measured_speeds import measured_speeds
from synergy_extender.cluster.run_state import open_run
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.colocation.order import key_of
from synergy_extender.colocation.usages import as_told, from_told, usages_of

MOST = 8
"""Sets of partners that are kept, the newest."""
MOST_PARTNERS = 47
"""MPS takes 48 clients."""
REMEMBERED_S = 600.0
"""Seconds that a mean is of: beyond these the oldest fade."""
ENOUGH_S, ENOUGH_STEPS = 10.0, 20.0
"""Time, and steps that the job would have done in it alone, before anybody goes by a mean: a report comes a moment
late, and one step more or less says little."""
ENOUGH_REPORTS = 5
"""Reports of a job alone before its measured speed replaces the one of its matrix."""
HELD_UP = 0.95
"""A job at this part of what its CPU allows is held up by the CPU, not by its partners."""
LESS = 0.9
"""Below this part of what was expected, sharing is called worse than predicted."""
_MOST_FRACTION = 4.0
_LEAST_FRACTION = 0.01


def partners_now(job: JobView, run: int, others: Mapping[Key, JobView]) -> list[str]:
    """The jobs that were seen on the run's GPU and are still there.

    None where one of them has gone, or where there are more than MPS lets onto one GPU: a job on several GPUs may see
    so many.
    """
    allocation = open_run(job)
    if allocation is None or allocation.run != run or allocation.shared_gpu is None:
        return []
    names = sorted(allocation.shared_gpu.seen or [])
    if len(names) > MOST_PARTNERS:
        return []
    return names if all(_is_there(others.get(key_of(name))) for name in names) else []


def _is_there(job: JobView | None) -> bool:
    allocation = open_run(job) if job is not None else None
    progress = job.status.progress if job is not None else None
    return allocation is not None and progress is not None and progress.run == allocation.run


def shared_after(
    before: Progress, now: Progress, job: JobView, others: Mapping[Key, JobView], at: float
) -> list[SharedSpeed]:
    """What is measured of the job's sharing once `now` has been reported after `before`.

    Only the time between two reports of one run with the same partners counts. Without a matrix, and without a speed
    that was measured alone, there is nothing to compare with, and nothing is measured.
    """
    known, allocation = list(before.shared), job.status.allocation
    together = now.gpu_partners and (before.run, before.gpu_partners) == (now.run, now.gpu_partners)
    if allocation is None or not together or before.updated_at is None:
        return known
    seconds = at - parse_time(before.updated_at) - max(0.0, now.paused_seconds - before.paused_seconds)
    speeds = _alone(job, allocation, before.placements)
    if speeds is None or seconds <= 0:
        return known
    best, here = speeds
    mine = (allocation.gpu_type, now.gpu_partners)
    old = next((one for one in known if (one.gpu_type, one.partners) == mine), None)
    begun = old or SharedSpeed(
        gpu_type=allocation.gpu_type,
        partners=now.gpu_partners,
        fraction=0.0,
        ceiling=0.0,
        expected=allocation.steps_per_second / best,
        seconds=0.0,
        updated_at=before.updated_at,
    )
    weight = max(0.0, min(begun.seconds, REMEMBERED_S - seconds))
    steps = max(0, now.steps - before.steps)
    new = begun.model_copy(
        update={
            "usages": _usages(now.gpu_partners, others, allocation.gpu_type),
            "fraction": (weight * begun.fraction + steps / best) / (weight + seconds),
            "ceiling": (weight * begun.ceiling + seconds * here / best) / (weight + seconds),
            "seconds": weight + seconds,
            "updated_at": format_time(at),
        }
    )
    return [*(one for one in known if one is not old), new][-MOST:]


def measured_beside_others(job: JobView) -> tuple[core.Shared, ...]:
    """What the planner gets of it, the newest last. In whole percents: results that depend on it can be reused until it
    changes by more than noise."""
    progress = job.status.progress
    if progress is None:
        return ()
    return tuple(
        core.Shared(
            gpu_type=one.gpu_type,
            partners=tuple(one.partners),
            usages=tuple(from_told(usage) for usage in one.usages),
            fraction=min(_MOST_FRACTION, max(_LEAST_FRACTION, round(one.fraction, 2))),
            at_s=parse_time(one.updated_at),
        )
        for one in progress.shared
        if _says_something(one, job)
    )


def measured_beside_references(job: JobView) -> tuple[core.BesideReference, ...]:
    """What profile runs measured of the job and reference jobs on one GPU, as the planner gets it."""
    profile = job.status.profile
    return tuple(
        core.BesideReference(
            gpu_type=one.gpu_type,
            usage=from_told(one.usage),
            kept=min(_MOST_FRACTION, one.kept),
            reference_kept=min(_MOST_FRACTION, one.reference_kept),
        )
        for one in (profile.pairs if profile is not None else [])
        if one.usage is not None and one.kept is not None and one.reference_kept is not None
    )


def errors_of_predictions(job: JobView) -> list[float]:
    """How far what was expected of the job beside others is from what was measured there, as parts of its speed; of a
    job that profile runs measured beside references, where enough was measured."""
    progress, profile = job.status.progress, job.status.profile
    if progress is None or profile is None:
        return []
    types = {pair.gpu_type for pair in profile.pairs if pair.kept is not None}
    shared = [one for one in progress.shared if one.gpu_type in types and _says_something(one, job)]
    return [abs(one.expected - one.fraction) for one in shared]


def parting(job: JobView, place: core.Allocation | None, jobs: Mapping[Key, JobView]) -> str:
    """Why the plan parts the job from its partners, in words, where one of them was slower than expected; empty where
    none was, or where they stay together."""
    allocation = job.status.allocation
    partners = partners_now(job, allocation.run, jobs) if allocation is not None else []
    if not partners or (place is not None and sorted(place.partners) == partners):
        return ""
    everyone = sorted([str(job.key), *partners])
    members = [jobs[key] for name in everyone if (key := key_of(name)) in jobs]
    return "; ".join(words for one in members if (words := _disappointment(one, everyone)))


def _disappointment(job: JobView, together: Sequence[str]) -> str:
    partners = [name for name in together if name != str(job.key)]
    for one in reversed(job.status.progress.shared if job.status.progress is not None else []):
        if one.partners == partners and _says_something(one, job) and one.fraction < LESS * one.expected:
            names = " and ".join(partners)
            return f"beside {names} {job.key} had {one.fraction:.0%} of its speed, {one.expected:.0%} were expected"
    return ""


def _says_something(one: SharedSpeed, job: JobView) -> bool:
    best = _best_alone(job, one.gpu_type)
    if best is None or one.seconds < ENOUGH_S or best * one.seconds < ENOUGH_STEPS:
        return False
    return one.ceiling >= HELD_UP or one.fraction < HELD_UP * one.ceiling


def _alone(job: JobView, allocation: Allocation, placements: Sequence[PlacementSpeed]) -> tuple[float, float] | None:
    """The job's speed alone on the GPU: the best that it can have, and with the CPU and memory that it has."""
    best, profile = _best_alone(job, allocation.gpu_type), job.profiles.get(allocation.gpu_type)
    if best is None or len(allocation.workers) != 1:
        return None
    if profile is None:
        return best, best
    from synergy_core.throughput.speed import Speed  # noqa: PLC0415 - it loads numpy, which who shares no GPU has no use for

    share, real = allocation.workers[0], _real(placements, allocation.gpu_type)
    return real * best, real * Speed(profile).at((share.cpu_millis, share.memory_bytes))


def _best_alone(job: JobView, gpu_type: str) -> float | None:
    """The speed with all the CPU and memory that it can use; without a matrix, what was measured as it ran alone."""
    profile = job.profiles.get(gpu_type)
    return measured_speeds(job).get(gpu_type) if profile is None else max(map(max, profile.steps_per_s))


def _real(placements: Sequence[PlacementSpeed], gpu_type: str) -> float:
    """What the job had alone on one node as a part of what its matrix says; 1 where that is not known well enough."""
    for one in placements:
        if (one.gpu_type, one.nodes) == (gpu_type, 1) and one.reports >= ENOUGH_REPORTS:
            return one.relative_speed
    return 1.0


def _usages(names: Sequence[str], others: Mapping[Key, JobView], gpu_type: str) -> list[GPUUsage]:
    """What is known of the partners' usage; nothing where it is not known of all."""
    found = []
    for name in names:
        partner = others.get(key_of(name))
        usage = usages_of(partner).get(gpu_type) if partner is not None else None
        if usage is None:
            return []
        found.append(as_told(usage, gpu_type))
    return found
