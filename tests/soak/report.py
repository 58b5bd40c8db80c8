"""What a soak came to. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import linear_regression
from typing import Any

from soak.load import Busy, Start
from soak.samples import Sample
from soak.size import Disturbance
from synergy_cli.bench.e2e.percentiles import percentile

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_AFTER_S = 60.0
"""A start counts as undisturbed if the job was created so long after a disturbance."""
_WARM_SHARE = 0.25
"""Of a process' longest stretch, how much is left out of its growth: it fills its caches."""
_LEAST_SAMPLES = 30
"""What is left of a stretch of a sixth of the soak. A shorter one shows caches that fill."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """All that was seen, Unix times."""

    size: Mapping[str, Any]
    machine: Mapping[str, Any]
    begun: float
    steady: float
    reached: bool
    """Whether the first jobs had all started then."""
    ended: float
    arrived: int
    runs: int
    lost: Sequence[str]
    """Jobs that did not end."""
    doubled: Sequence[str]
    """In words: GPUs that were given twice, jobs that ran twice."""
    half_bound: Sequence[str]
    """In words: gangs of which some workers waited long for the others."""
    problems: Sequence[str]
    """In words: processes that ended by themselves, or did not come back in time."""
    bindings: int
    starts: Sequence[Start]
    bare_pods: Sequence[tuple[float, float]]
    busy: Sequence[Busy]
    samples: Mapping[str, Sequence[Sample]]
    disturbances: Sequence[tuple[Disturbance, float, float]]


def report(seen: Seen) -> dict[str, Any]:
    """Figures, and the series behind them with seconds from the first job."""
    begun = seen.begun
    quiet = [one for one in seen.starts if not _disturbed(one.created, seen.disturbances)]
    return {
        "soak": {**seen.size, "seconds": seen.ended - begun, "steady_s": seen.steady - begun, "reached": seen.reached},
        "machine": dict(seen.machine),
        "jobs": {
            "arrived": seen.arrived,
            "lost": len(seen.lost),
            "doubled": len(seen.doubled),
            "half_bound": len(seen.half_bound),
            "runs": seen.runs,
            "pods_bound": seen.bindings,
        },
        "lost": list(seen.lost),
        "doubled": list(seen.doubled),
        "half_bound": list(seen.half_bound),
        "problems": list(seen.problems),
        "gpus_training": _mean_share(seen),
        "start_s": {
            "created to running": _percentiles(one.running - one.created for one in seen.starts),
            "the same, undisturbed": _percentiles(one.running - one.created for one in quiet),
            "granted to running": _percentiles(one.running - one.due for one in seen.starts),
            "a bare pod": _percentiles(seconds for _, seconds in seen.bare_pods),
        },
        "processes": {name: _process(samples, seen) for name, samples in seen.samples.items()},
        "disturbances": [
            {"kind": str(one.kind), "at": begin - begun, "until": end - begun, "nodes": len(one.nodes)}
            for one, begin, end in seen.disturbances
        ],
        "series": {
            "starts": [[one.created - begun, one.running - one.created] for one in seen.starts],
            "bare_pods": [[at - begun, seconds] for at, seconds in seen.bare_pods],
            "busy": [[one.at - begun, one.training, one.asked] for one in seen.busy],
            "memory_mb": {
                name: [[one.at - begun, one.megabytes] for one in samples] for name, samples in seen.samples.items()
            },
        },
    }


def good(found: Mapping[str, Any]) -> bool:
    """Nothing was lost or doubled, and no process ended by itself."""
    return not found["lost"] and not found["doubled"] and not found["problems"]


def _disturbed(created: float, disturbances: Iterable[tuple[Disturbance, float, float]]) -> bool:
    return any(begin <= created <= end + _AFTER_S for _, begin, end in disturbances)


def _percentiles(seconds: Iterable[float]) -> dict[str, float]:
    found = list(seconds)
    named = {name: percentile(found, share) for name, share in SHARES.items()} if found else {}
    return {"count": len(found), **named}


def _mean_share(seen: Seen) -> float:
    """The GPUs that trained, as a share of all, from the moment the load was reached to the last arrival."""
    within = [one.training for one in seen.busy if seen.steady <= one.at <= seen.ended]
    return sum(within) / len(within) / seen.size["gpus"] if within else 0.0


def _process(samples: Sequence[Sample], seen: Seen) -> dict[str, float | None]:
    """Memory at the end and at most, its growth while the process ran longest, and the cores that it used."""
    within = [one for one in samples if one.at <= seen.ended]
    stretch = max(stretches(within), key=len, default=[])
    warm = stretch[int(_WARM_SHARE * len(stretch)) :]
    return {
        "last_mb": within[-1].megabytes if within else 0.0,
        "most_mb": max((one.megabytes for one in within), default=0.0),
        "growth_mb_per_hour": growth_per_hour(warm),
        "cores": cores(stretch),
    }


def stretches(samples: Iterable[Sample]) -> list[list[Sample]]:
    """The samples, cut where a process was started anew: its processor time is less than before."""
    found: list[list[Sample]] = []
    for sample in samples:
        if not found or sample.cpu_s < found[-1][-1].cpu_s:
            found.append([])
        found[-1].append(sample)
    return found


def growth_per_hour(samples: Sequence[Sample]) -> float | None:
    """Megabytes an hour, the slope of a straight line; None of too few samples."""
    if len(samples) < _LEAST_SAMPLES:
        return None
    fit = linear_regression([one.at for one in samples], [one.megabytes for one in samples])
    return 3600 * fit.slope


def cores(samples: Sequence[Sample]) -> float | None:
    """Processor seconds per second."""
    if len(samples) < 2:
        return None
    return (samples[-1].cpu_s - samples[0].cpu_s) / (samples[-1].at - samples[0].at)
