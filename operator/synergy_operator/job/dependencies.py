"""Jobs that come before a job (`spec.after`): which are done, and which it still waits for.

Only a job that has never trained waits. What is done once stays done, also when the other job is deleted.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from synergy_api.parts.relations.dependencies import Dependency
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.training_job import FINISHED
from synergy_operator.views.job import JobView

_MOST_NAMES: Final = 16
"""Of a cycle, that a message shows."""
_UNTIL: Final = {"Succeeded": "to succeed", "Finished": "to end"}


@dataclass(frozen=True, slots=True)
class Dependencies:
    """`met` are names for the status. `waits` says why the job waits, `failed` why it never can start."""

    met: tuple[str, ...] = ()
    waits: Finding | None = None
    failed: Finding | None = None


def dependencies(job: JobView, others: Mapping[str, JobView]) -> Dependencies:
    """Of a job whose spec parses. `others` are the jobs of its namespace that `reachable` finds."""
    known = tuple(job.status.met_dependencies)
    after = job.spec.after if job.spec is not None else []
    if job.status.start_time is not None or not after:
        return Dependencies(known)
    met = tuple(one.job for one in after if one.job in known or _is_met(one, others.get(one.job)))
    open_ones = [one for one in after if one.job not in met]
    failed = [one.job for one in open_ones if _failed(others.get(one.job))]
    if failed:
        return Dependencies(met, failed=say(Reason.DEPENDENCY_FAILED, jobs=", ".join(failed)))
    if not open_ones:
        return Dependencies(met)
    path = _cycle(job, others)
    if path:
        shown = path if len(path) <= _MOST_NAMES else [*path[: _MOST_NAMES - 2], "...", path[-1]]
        return Dependencies(met, waits=say(Reason.DEPENDENCY_CYCLE, path=" waits for ".join(shown)))
    words = ", ".join(_words(one, others.get(one.job)) for one in open_ones)
    return Dependencies(met, waits=say(Reason.WAITS_FOR_JOBS, jobs=words))


def reachable(job: JobView, get: Callable[[str], JobView | None]) -> dict[str, JobView]:
    """The jobs that it waits for, those that these wait for, and so on. `get` finds one in its namespace by name."""
    found: dict[str, JobView] = {}
    left = [*named_by(job)]
    while left:
        name = left.pop()
        other = get(name) if name not in found else None
        if other is not None:
            found[name] = other
            left.extend(named_by(other))
    return found


def named_by(job: JobView) -> Iterator[str]:
    """Names of the jobs that it waits for, or would if it had not trained yet."""
    if job.spec is not None and job.status.start_time is None and job.status.phase not in FINISHED:
        yield from (one.job for one in job.spec.after)


def _is_met(one: Dependency, other: JobView | None) -> bool:
    if other is None:
        return False
    return other.status.phase == "Succeeded" or (one.until == "Finished" and other.status.phase in FINISHED)


def _failed(other: JobView | None) -> bool:
    return other is not None and other.status.phase == "Failed"


def _words(one: Dependency, other: JobView | None) -> str:
    missing = " (there is no such job)" if other is None else ""
    return f"{one.job} {_UNTIL[one.until]}{missing}"


def _cycle(job: JobView, others: Mapping[str, JobView]) -> list[str]:
    """Names from the job back to itself, each of which waits for the next, on the shortest way; empty where there is
    none."""
    came_from: dict[str, str] = {}
    left = [job.name]
    for last in left:
        one = job if last == job.name else others.get(last)
        for name in named_by(one) if one is not None else ():
            if name == job.name:
                return [*_way(came_from, job.name, last), name]
            if name not in came_from:
                came_from[name] = last
                left.append(name)
    return []


def _way(came_from: Mapping[str, str], start: str, end: str) -> list[str]:
    found = [end]
    while found[-1] != start:
        found.append(came_from[found[-1]])
    return found[::-1]
