"""Bounds for the plan that follow from refused resizes, recorded in `status.sizeLimits`.

The API server refuses a resize (quota), the kubelet refuses it for good (Infeasible), or the kubelet cannot free memory
that stays in use. If the resize was to grow a resource, growth was refused, otherwise shrinking. The bounds hold for
the whole gang, since a gang trains as fast as its slowest worker. The other workers give back what they got already.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Final

from synergy_api.amounts import Amounts
from synergy_api.parts.sizes import SizeLimits
from synergy_api.quantity import format_bytes, format_cpu
from synergy_api.reasons import Finding, Reason, say
from synergy_api.timestamps import format_time, parse_time
from synergy_operator.pods.gang import GangWorker
from synergy_operator.run.step import reason_text
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView
from synergy_operator.views.refusals import RefusedResize

RETRY_SECONDS: Final = 900.0
"""Delay before a refused resize is requested again: rarer than each round, and soon enough to notice a raised quota."""
ROOM_SECONDS: Final = 30.0
"""How long a job may take to free memory.

It learns of the plan with its next report, within 10 s. The kubelet tries again every 10 to 15 s.
"""


def bounds_of(
    observed: Observed, gang: Iterable[GangWorker], pods: Iterable[PodView], now: float, *, run: int, gpus: int
) -> SizeLimits | None:
    """The bounds for the open run: those that still hold, tightened by refusals since. `gpus` are the job's."""
    held = [pod for pod in pods if not pod.terminal and not pod.deleting and pod.gpus > 0]
    if not observed.resizable:
        whole = {worker.rank for worker in gang} == {pod.rank for pod in held}
        return _fixed_sizes(run, held) if held and whole else None
    before = observed.job.status.size_limits
    if before is None or before.run != run or before.until is None or parse_time(before.until) <= now:
        before = SizeLimits(run=run)
    changes = (_refused_change(pod, observed.refusals.resizes.get(pod.uid), now) for pod in held)
    limits = reduce(lambda known, change: _tightened(known, change, gpus), (x for x in changes if x), before)
    return limits if limits.until is not None else None


def next_bounds_change(limits: SizeLimits | None, pods: Iterable[PodView], now: float) -> float | None:
    """Seconds until bounds begin or end if nothing else happens; None for never."""
    ends = [parse_time(limits.until)] if limits is not None and limits.until is not None else []
    begins = [in_use for pod in pods if (in_use := _in_use_at(pod, now)) > now]
    return min((moment - now for moment in (*ends, *begins)), default=None)


def _in_use_at(pod: PodView, now: float) -> float:
    """When a pod's time to free memory ends, in Unix seconds; 0 if no smaller memory was requested."""
    asked = pod.resize.reason == "Error" and pod.memory_bytes < pod.resize.memory_bytes
    return (pod.resize.since or now) + ROOM_SECONDS if asked else 0.0


@dataclass(frozen=True, slots=True)
class _RefusedChange:
    """A worker was refused the size `asked`.

    It cannot grow in the dimensions `most`, and cannot shrink in the dimensions `least`, beyond what it has. Amounts
    are those of its whole pod.
    """

    asked: Amounts
    has: Amounts
    most: frozenset[str]
    least: frozenset[str]
    until: float
    finding: Finding


def _refused_change(pod: PodView, refused: RefusedResize | None, now: float) -> _RefusedChange | None:
    asked, has = (
        Amounts(0, pod.cpu_millis, pod.memory_bytes),
        Amounts(0, pod.resize.cpu_millis, pod.resize.memory_bytes),
    )
    until, memory_first = now + RETRY_SECONDS, False
    if refused is not None and refused.at + RETRY_SECONDS > now:
        asked, has = Amounts(0, refused.cpu_millis, refused.memory_bytes), asked
        until, memory_first = refused.at + RETRY_SECONDS, refused.invalid
        reason, problem = Reason.RESIZE_REFUSED, refused.message
    elif pod.resize.reason == "Infeasible":
        reason, problem = Reason.RESIZE_INFEASIBLE, pod.resize.message
    elif 0 < _in_use_at(pod, now) <= now:
        reason, problem, memory_first = Reason.MEMORY_IN_USE, pod.resize.message, True
    else:
        return None
    most, least = _refused_dimensions(asked, has, memory_first=memory_first)
    if not most and not least:
        return None
    facts = {"cpu": format_cpu(asked.cpu_millis), "memory": format_bytes(asked.memory_bytes), "problem": problem}
    finding = say(reason, rank=pod.rank, minutes=int(RETRY_SECONDS // 60), **facts)
    beside = Amounts(pod.gpus, pod.beside_cpu_millis, pod.beside_memory_bytes)
    return _RefusedChange(asked.plus(beside), has.plus(beside), most, least, until, finding)


def _refused_dimensions(asked: Amounts, has: Amounts, *, memory_first: bool) -> tuple[frozenset[str], frozenset[str]]:
    """The dimensions in which the worker cannot grow, and those in which it cannot shrink.

    With `memory_first` a shrinking of memory was refused, if there was one.
    """
    fields = ("cpu_millis", "memory_bytes")
    grows = frozenset(name for name in fields if getattr(asked, name) > getattr(has, name))
    shrinks = frozenset(name for name in fields if getattr(asked, name) < getattr(has, name))
    if memory_first and "memory_bytes" in shrinks:
        return frozenset(), frozenset({"memory_bytes"})
    return (grows, frozenset()) if grows else (frozenset(), shrinks)


def _tightened(limits: SizeLimits, change: _RefusedChange, gpus: int) -> SizeLimits:
    """The bounds with one more refused change, unless they imply it already. Each reconcile sees the same refusals
    again."""
    if limits.clamp(change.asked, gpus) != change.asked:
        return limits
    part = change.has.gpus
    bounds = {name: getattr(limits, name) for name in _BOUNDS}
    for name in change.most:
        most = getattr(change.has, name) * gpus // part
        bounds[f"max_{name}"] = min(most, bounds[f"max_{name}"] or most)
    for name in change.least:
        least = -(-getattr(change.has, name) * gpus // part)
        bounds[f"min_{name}"] = max(least, bounds[f"min_{name}"] or least)
    update = {"until": format_time(change.until), "reason": reason_text(change.finding)}
    return limits.model_copy(update={**bounds, **update})


_BOUNDS: Final = ("min_cpu_millis", "max_cpu_millis", "min_memory_bytes", "max_memory_bytes")


def _fixed_sizes(run: int, pods: Iterable[PodView]) -> SizeLimits:
    """The bounds if pods cannot be resized: a run keeps the sizes that its pods were created with."""
    total = Amounts()
    for pod in pods:
        total = total.plus(Amounts(pod.gpus, pod.cpu_millis, pod.memory_bytes))
        total = total.plus(Amounts(0, pod.beside_cpu_millis, pod.beside_memory_bytes))
    return SizeLimits(
        run=run,
        min_cpu_millis=total.cpu_millis,
        max_cpu_millis=total.cpu_millis,
        min_memory_bytes=total.memory_bytes,
        max_memory_bytes=total.memory_bytes,
        reason=reason_text(say(Reason.RESIZE_UNAVAILABLE)),
    )
