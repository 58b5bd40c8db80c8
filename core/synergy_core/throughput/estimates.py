"""The speed that a plan assumes for a job on GPU types for which the job has no sensitivity matrix.

In this order: the speed measured while the job ran there; an estimate from the other jobs of the snapshot
(`throughput.gpu_types`); while the job runs there, the earlier estimate. Such a speed decides on which types a job
runs, never what it gets beside its GPUs. An estimate may be wrong, so the job has its whole GPU-proportional share,
like every job without a known speed.

Where all nodes of a type limit a client's threads, measured speeds include the limit, and so do estimates from them.
For a job with known usage the limit is taken out again: the plan applies it when it places the job.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from types import MappingProxyType

from synergy_core.model.answer import Estimate
from synergy_core.model.config import EstimateMode
from synergy_core.model.pool import Pool
from synergy_core.model.resources import Vector, times
from synergy_core.model.snapshot import Job, Profile
from synergy_core.model.usage import Usage
from synergy_core.throughput.gpu_types import AT_SHARE, Estimated, Known, Place, estimated
from synergy_core.throughput.limited import Limited, as_it_ran, by_matrix
from synergy_core.throughput.speed import Speed
from synergy_core.throughput.threads import kept_alone, least_percent, most_percent

_CPU_POINTS = (0.25, 0.5, AT_SHARE, 2.0)
"""Multiples of the share's CPU at which a matrix is read: how a job's speed follows the CPU says much about what it
gains from a faster GPU."""

NO_SPEEDS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Read:
    """What the matrices of a job say of its speeds."""

    profiles: Mapping[str, Profile]
    gpus: int
    usage: Mapping[str, Usage]
    speeds: dict[Place, float]
    limited: dict[str, Limited]
    """On the types where these speeds have a limit on threads in them."""


class Speeds:
    """Speeds of the present plan's jobs on types without a matrix, by job and type."""

    def __init__(self) -> None:
        self.of: Mapping[str, Mapping[str, float]] = {}
        """Steps per second at the share; jobs without an entry go by their matrices alone."""
        self.estimates: tuple[Estimate, ...] = ()
        """Those of them that are estimated, by job and type."""
        self._estimated: frozenset[tuple[str, str]] = frozenset()
        self._pools: Sequence[Pool] = ()
        self._read: dict[str, _Read] = {}
        self._asked: tuple[Sequence[Known], Mapping[str, Sequence[str]]] = ((), {})
        self._found: Mapping[str, Mapping[str, Estimated]] = {}
        """What was found for `_asked`."""

    def begin(self, jobs: Sequence[Job], pools: Sequence[Pool], mode: EstimateMode) -> None:
        """Begin a plan. What was read from matrices that are the same object is used again, on the same pools; what was
        estimated, where nothing is known or asked that was not before."""
        types = [pool.gpu_type for pool in pools if pool.open_gpus[0] > 0]
        wanted = {job.name: lacking for job in jobs if (lacking := _wanted(job, types, mode))}
        told = mode != "none" and any(job.measured for job in jobs)
        if not wanted and not told:
            self.of, self.estimates, self._estimated, self._pools, self._read = {}, (), frozenset(), (), {}
            return
        if self._pools is not pools:
            self._pools, self._read = pools, {}
        training = [job for job in jobs if job.purpose == "train"]
        self._read = {job.name: _read(job, pools, self._read.get(job.name)) for job in training}
        known = {job.name: _known(job, self._read[job.name]) for job in training}
        found = self._estimates(_different(known.values(), wanted), {n: w for n, w in wanted.items() if known[n].types})
        found = self._on_whole_gpus({job.name: job for job in training}, found)
        for job in training:
            if lost := _as_it_runs(job, pools, wanted.get(job.name, ())):
                found[job.name] = {**lost, **found.get(job.name, {})}
        self.of = {job.name: own for job in training if (own := _own(job, types, found.get(job.name, {})))}
        self.estimates = tuple(
            Estimate(job=name, gpu_type=gpu_type, steps_per_s=one.steps_per_s, reference=one.reference)
            for name in sorted(found)
            if name in self.of
            for gpu_type, one in sorted(found[name].items())
        )
        self._estimated = frozenset((one.job, one.gpu_type) for one in self.estimates)

    def _estimates(
        self, known: Sequence[Known], wanted: Mapping[str, Sequence[str]]
    ) -> dict[str, Mapping[str, Estimated]]:
        if self._asked != (known, wanted):
            self._asked, self._found = (known, wanted), estimated(known, wanted)
        return dict(self._found)

    def _on_whole_gpus(
        self, jobs: Mapping[str, Job], found: Mapping[str, Mapping[str, Estimated]]
    ) -> dict[str, Mapping[str, Estimated]]:
        """Without the limits on threads that the plan applies later, to jobs with known usage."""
        if not any(pool.limits_threads for pool in self._pools):
            return dict(found)
        percents = {pool.gpu_type: most_percent(pool.nodes) for pool in self._pools}

        def whole(job: Job, gpu_type: str, one: Estimated) -> Estimated:
            reference, usage = jobs[one.reference], job.usage.get(gpu_type)
            limited = self._read[one.reference].limited.get(gpu_type)
            limited = limited or as_it_ran(reference, gpu_type, percents[gpu_type])
            if limited is None or usage is None:
                return one
            return replace(one, steps_per_s=limited.without(one.steps_per_s, usage))

        return {
            name: {
                gpu_type: one
                for gpu_type, limited in estimates.items()
                if isfinite((one := whole(jobs[name], gpu_type, limited)).steps_per_s)
            }
            for name, estimates in found.items()
        }

    def is_estimated(self, job: str, gpu_type: str) -> bool:
        """Whether the job's speed on a type is an estimate."""
        return (job, gpu_type) in self._estimated


def _wanted(job: Job, types: Iterable[str], mode: EstimateMode) -> tuple[str, ...]:
    """The types on which the job may run and neither has a matrix nor was measured."""
    if mode == "none" or job.purpose != "train" or not (job.profiles or job.measured):
        return ()
    if mode == "named" and not job.gpu_types:
        return ()
    named = job.gpu_types or types
    return tuple(t for t in types if t in named and t not in job.profiles and t not in job.measured)


def _read(job: Job, pools: Iterable[Pool], before: _Read | None) -> _Read:
    """The job's speeds by its matrices; of a type on which it does not move by them, nothing."""
    known = before is not None and before.profiles is job.profiles and before.usage == job.usage
    if before is not None and known and before.gpus == job.gpus:
        return before
    found: dict[Place, float] = {}
    limited: dict[str, Limited] = {}
    for pool in pools:
        profile = job.profiles.get(pool.gpu_type)
        if profile is not None:
            speed = Speed(profile, pool.further)
            own = {part: speed.at(times(_with_cpu(pool.best_share, part), job.gpus)) for part in _CPU_POINTS}
            if not all(own.values()):
                continue
            limit = by_matrix(job, pool.gpu_type, own[AT_SHARE], speed.best, most_percent(pool.nodes))
            most = inf
            if limit is not None:
                limited[pool.gpu_type], most = limit, limit.most
            found |= {(pool.gpu_type, part): min(value, most) for part, value in own.items()}
    return _Read(job.profiles, job.gpus, job.usage, found, limited)


def _as_it_runs(job: Job, pools: Iterable[Pool], lacking: Iterable[str]) -> dict[str, Estimated]:
    """What a job that runs by an estimate goes on by when those that this came from are gone: it would be moved off."""
    running = job.running
    if running is None or not running.estimated or running.gpu_type not in lacking:
        return {}
    pool = next((pool for pool in pools if pool.gpu_type == running.gpu_type), None)
    if pool is None or not running.proportional_steps_per_s > 0.0:
        return {}
    there = (pool.nodes[pool.index[share.node]] for share in running.workers if share.node in pool.index)
    part = kept_alone(job, pool.gpu_type, least_percent(there))  # the limit on threads is in what it was given
    return {pool.gpu_type: Estimated(running.proportional_steps_per_s / part, reference="")}


def _known(job: Job, read: _Read) -> Known:
    batch = None if job.batch_size is None else job.batch_size / job.gpus
    return Known(job.name, job.gpus, read.speeds | _measured(job), job.model, batch)


def _measured(job: Job) -> dict[Place, float]:
    return {(gpu_type, AT_SHARE): speed for gpu_type, speed in job.measured.items() if gpu_type not in job.profiles}


def _with_cpu(share: Vector, part: float) -> Vector:
    return (max(1, int(share[0] * part)), *share[1:])


def _different(known: Iterable[Known], wanted: Mapping[str, object]) -> list[Known]:
    """Those that ask, and of all others that are alike the first by name."""
    found: dict[object, Known] = {}
    for job in sorted(known, key=lambda job: job.name):
        own = job.name if job.name in wanted else (job.gpus, job.model, job.batch, tuple(sorted(job.speeds.items())))
        found.setdefault(own, job)
    return list(found.values())


def _own(job: Job, types: Iterable[str], found: Mapping[str, Estimated]) -> dict[str, float]:
    """A job without any matrix counts as equally fast everywhere until there is a number for each type that it may use:
    with some it would be kept from the others, which may be the faster ones."""
    own = {gpu_type: speed for gpu_type, speed in job.measured.items() if gpu_type not in job.profiles}
    own |= {gpu_type: one.steps_per_s for gpu_type, one in found.items()}
    allowed = (gpu_type for gpu_type in types if not job.gpu_types or gpu_type in job.gpu_types)
    return own if job.profiles or all(gpu_type in own for gpu_type in allowed) else {}
