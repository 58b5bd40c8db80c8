"""Jobs that come before a job (`spec.after`): which are done, and which it still waits for.

Only a job that has never trained waits. What is done once stays done, also when the other job is deleted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


def dependencies(job: JobView, phases: Mapping[str, str], cycle: Sequence[str]) -> Dependencies:
    """Of a job whose spec parses. `phases` are those of the jobs that it names and that there are, by name; `cycle` is
    what `find_cycle` finds."""
    known = tuple(job.status.met_dependencies)
    after = job.spec.after if job.spec is not None else []
    if job.status.start_time is not None or not after:
        return Dependencies(known)
    met = tuple(one.job for one in after if one.job in known or _is_met(one, phases.get(one.job)))
    open_ones = [one for one in after if one.job not in met]
    failed = [one.job for one in open_ones if phases.get(one.job) == "Failed"]
    if failed:
        return Dependencies(met, failed=say(Reason.DEPENDENCY_FAILED, jobs=", ".join(failed)))
    if not open_ones:
        return Dependencies(met)
    if cycle:
        shown = cycle if len(cycle) <= _MOST_NAMES else [*cycle[: _MOST_NAMES - 2], "...", cycle[-1]]
        return Dependencies(met, waits=say(Reason.DEPENDENCY_CYCLE, path=" waits for ".join(shown)))
    words = ", ".join(_words(one, there=one.job in phases) for one in open_ones)
    return Dependencies(met, waits=say(Reason.WAITS_FOR_JOBS, jobs=words))


def named_by(job: JobView) -> Iterator[str]:
    """Names of the jobs that it waits for, or would if it had not trained yet."""
    if job.spec is not None and job.status.start_time is None and job.status.phase not in FINISHED:
        yield from (one.job for one in job.spec.after)


def find_cycle(job: JobView, named: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
    """Names from the job back to itself, each of which waits for the next, on the shortest way; empty where there is
    none. `named` gives the names that another job of its namespace waits for, as `named_by` does."""
    came_from: dict[str, str] = {}
    left = [job.name]
    for last in left:
        for name in named_by(job) if last == job.name else named(last):
            if name == job.name:
                return (*_way(came_from, job.name, last), name)
            if name not in came_from:
                came_from[name] = last
                left.append(name)
    return ()


def _is_met(one: Dependency, phase: str | None) -> bool:
    return phase == "Succeeded" or (one.until == "Finished" and phase in FINISHED)


def _words(one: Dependency, *, there: bool) -> str:
    missing = "" if there else " (there is no such job)"
    return f"{one.job} {_UNTIL[one.until]}{missing}"


def _way(came_from: Mapping[str, str], start: str, end: str) -> list[str]:
    found = [end]
    while found[-1] != start:
        found.append(came_from[found[-1]])
    return found[::-1]
