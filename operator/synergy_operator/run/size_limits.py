"""What refused resizes teach: bounds for the plan, recorded in `status.sizeLimits`.

A resize is refused by the API server (a quota), by the kubelet for good (Infeasible), or by the kubelet because the
memory is in use and stays so. Where something was to grow, growth is what was refused; else shrinking was. The bounds
are of the whole gang, since a gang trains as fast as its slowest worker: what its others got already, they give back.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Final

from synergy_api.pods import Amounts
from synergy_api.quantity import format_bytes, format_cpu
from synergy_api.reasons import Finding, Reason, say
from synergy_api.sizes import SizeLimits
from synergy_api.timestamps import format_time, parse_time
from synergy_operator.pods.gang import GangWorker
from synergy_operator.run.step import reason_text
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView
from synergy_operator.views.refusals import RefusedResize

RETRY_SECONDS: Final = 900.0
"""How long what was refused is not asked for again: not every round, but a quota may have been raised since."""
ROOM_SECONDS: Final = 30.0
"""How long a job may take to make room in its memory: it hears of the plan at its next report, within 10 s, and the
kubelet tries again every 10 to 15 s."""


def bounds_of(
    observed: Observed, gang: Iterable[GangWorker], pods: Iterable[PodView], now: float, *, run: int, gpus: int
) -> SizeLimits | None:
    """The bounds for the open run: those that hold still, tightened by what was refused since. `gpus` are the job's."""
    held = [pod for pod in pods if not pod.terminal and not pod.deleting and pod.gpus > 0]
    if not observed.resizable:
        whole = {member.rank for member in gang} == {pod.rank for pod in held}
        return _as_they_are(run, held) if held and whole else None
    before = observed.job.status.size_limits
    if before is None or before.run != run or before.until is None or parse_time(before.until) <= now:
        before = SizeLimits(run=run)
    lessons = (_refused_change(pod, observed.refusals.resizes.get(pod.uid), now) for pod in held)
    limits = reduce(lambda known, lesson: _tightened(known, lesson, gpus), (x for x in lessons if x), before)
    return limits if limits.until is not None else None


def next_bounds_change(limits: SizeLimits | None, pods: Iterable[PodView], now: float) -> float | None:
    """In how many seconds bounds end or begin, if nothing else happens; None for never."""
    ends = [parse_time(limits.until)] if limits is not None and limits.until is not None else []
    begins = [in_use for pod in pods if (in_use := _in_use_at(pod, now)) > now]
    return min((moment - now for moment in (*ends, *begins)), default=None)


def _in_use_at(pod: PodView, now: float) -> float:
    """When a pod has had its time to make room in its memory; 0 where nothing is asked of it."""
    asked = pod.resize.hitch == "Error" and pod.memory_bytes < pod.resize.memory_bytes
    return (pod.resize.since or now) + ROOM_SECONDS if asked else 0.0


@dataclass(frozen=True, slots=True)
class _RefusedChange:
    """A worker was refused `asked`: from what it has it cannot grow (`most`), or not shrink (`least`), in these
    dimensions. Amounts are of its whole pod."""

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
    elif pod.resize.hitch == "Infeasible":
        reason, problem = Reason.RESIZE_INFEASIBLE, pod.resize.problem
    elif 0 < _in_use_at(pod, now) <= now:
        reason, problem, memory_first = Reason.MEMORY_IN_USE, pod.resize.problem, True
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
    """In which dimensions the worker can have no more, and in which no less. With `memory_first` it is the memory that
    cannot shrink, where it should."""
    fields = ("cpu_millis", "memory_bytes")
    grows = frozenset(name for name in fields if getattr(asked, name) > getattr(has, name))
    shrinks = frozenset(name for name in fields if getattr(asked, name) < getattr(has, name))
    if memory_first and "memory_bytes" in shrinks:
        return frozenset(), frozenset({"memory_bytes"})
    return (grows, frozenset()) if grows else (frozenset(), shrinks)


def _tightened(limits: SizeLimits, lesson: _RefusedChange, gpus: int) -> SizeLimits:
    """The bounds with one more lesson, unless they say it already: it is heard again at every look."""
    if limits.clamp(lesson.asked, gpus) != lesson.asked:
        return limits
    part = lesson.has.gpus
    bounds = {name: getattr(limits, name) for name in _BOUNDS}
    for name in lesson.most:
        most = getattr(lesson.has, name) * gpus // part
        bounds[f"max_{name}"] = min(most, bounds[f"max_{name}"] or most)
    for name in lesson.least:
        least = -(-getattr(lesson.has, name) * gpus // part)
        bounds[f"min_{name}"] = max(least, bounds[f"min_{name}"] or least)
    update = {"until": format_time(lesson.until), "reason": reason_text(lesson.finding)}
    return limits.model_copy(update={**bounds, **update})


_BOUNDS: Final = ("min_cpu_millis", "max_cpu_millis", "min_memory_bytes", "max_memory_bytes")


def _as_they_are(run: int, pods: Iterable[PodView]) -> SizeLimits:
    """Where nothing can be resized a run keeps what its pods were made with."""
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
