"""Bounds for the plan that follow from refused resizes, recorded in `status.sizeLimits`.

The API server refuses a resize (quota), the kubelet refuses it for good (Infeasible), or the kubelet cannot free memory
that stays in use. If the resize grows a resource, the refusal is of growth, otherwise of shrinking. The bounds hold for
the whole gang, since a gang trains as fast as its slowest worker. The other workers give back what they got already.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.parts.sizes import SizeLimits
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
    asked = pod.resize.reason == "Error" and pod.requests.memory_bytes < pod.resize.has.memory_bytes
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
    asked, has = pod.requests, pod.resize.has
    until, memory_first = now + RETRY_SECONDS, False
    if refused is not None and refused.at + RETRY_SECONDS > now:
        asked, has = refused.asked, asked
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
    finding = say(reason, rank=pod.rank, minutes=int(RETRY_SECONDS // 60), problem=problem, **asked.quantities)
    beside = pod.beside._replace(gpus=pod.gpus)
    return _RefusedChange(asked.plus(beside), has.plus(beside), most, least, until, finding)


def _refused_dimensions(asked: Amounts, has: Amounts, *, memory_first: bool) -> tuple[frozenset[str], frozenset[str]]:
    """The dimensions in which the worker cannot grow, and those in which it cannot shrink.

    With `memory_first` a shrinking of memory was refused, if there was one.
    """
    grows = frozenset(name for name, amount in asked.fields.items() if amount > getattr(has, name))
    shrinks = frozenset(name for name, amount in asked.fields.items() if amount < getattr(has, name))
    if memory_first and "memory_bytes" in shrinks:
        return frozenset(), frozenset({"memory_bytes"})
    return (grows, frozenset()) if grows else (frozenset(), shrinks)


def _tightened(limits: SizeLimits, change: _RefusedChange, gpus: int) -> SizeLimits:
    """The bounds with one more refused change, unless they imply it already. Each reconcile sees the same refusals
    again."""
    if limits.clamp(change.asked, gpus) != change.asked:
        return limits
    part = change.has.gpus
    update: dict[str, Any] = {"until": format_time(change.until), "reason": reason_text(change.finding)}
    for name in change.most:
        most = getattr(change.has.part(gpus, part), name)
        update[f"max_{name}"] = min(most, limits.bounds(name)[1] or most)
    for name in change.least:
        least = getattr(change.has.part(gpus, part, up=True), name)
        update[f"min_{name}"] = max(least, limits.bounds(name)[0] or least)
    return limits.model_copy(update=update)


def _fixed_sizes(run: int, pods: Iterable[PodView]) -> SizeLimits:
    """The bounds if pods cannot be resized: a run keeps the sizes that its pods were created with."""
    total = reduce(Amounts.plus, (pod.amounts for pod in pods), NOTHING)
    bounds = {f"{end}_{name}": amount for name, amount in total.fields.items() for end in ("min", "max")}
    return SizeLimits(run=run, reason=reason_text(say(Reason.RESIZE_UNAVAILABLE)), **bounds)
