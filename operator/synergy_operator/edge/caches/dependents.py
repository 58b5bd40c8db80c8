"""Jobs that wait for other jobs, by the jobs that they wait for."""

from collections.abc import Callable, Iterable

from synergy_api.resources.training_job import FINISHED
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.job.dependencies import find_cycle, named_by
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key


def named_phases(job: JobView, jobs: JobCache) -> dict[str, str]:
    """The phases of the jobs that it waits for, by name; empty for a job that has none yet."""
    named = {name: jobs.stored((job.namespace, name)) for name in named_by(job)}
    return {name: stored.phase for name, stored in named.items() if stored is not None}


class Dependents:
    """Which jobs name which others in spec.after."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[str, ...]] = {}
        self._names: dict[Key, tuple[str, ...]] = {}
        self._of: dict[Key, set[Key]] = {}

    def update(self, key: Key, job: JobView | None) -> frozenset[Key]:
        """Take over a job as it is now; None if it is gone. Return the jobs whose waiting this may change: those that
        wait for it, and those that wait for each other with it, or did before."""
        names = () if job is None else tuple(named_by(job))
        named = {*names, *self._names.get(key, ())}
        self._name(key, names)
        phase = "" if job is None or job.status.phase not in FINISHED else str(job.status.phase)
        seen = () if job is None else (job.uid, phase, *sorted(names))
        if self._seen.get(key, ()) == seen:
            return frozenset()
        if seen:
            self._seen[key] = seen
        else:
            self._seen.pop(key, None)
        waiting = frozenset(self._of.get(key, ()))
        return waiting | self._together(key, named) if waiting and named else waiting

    def cycle(self, job: JobView) -> tuple[str, ...]:
        """The jobs that wait for each other with this one, by name, as `find_cycle` finds them. None is parsed: there
        may be thousands before a job."""
        return find_cycle(job, lambda name: self._names.get((job.namespace, name), ()))

    def _together(self, key: Key, named: set[str]) -> frozenset[Key]:
        """The jobs that wait for this one and for which it waits itself, both directly or through others."""
        namespace, _ = key
        before = _reached(((namespace, name) for name in named), self._named_by)
        return before & _reached(self._of.get(key, ()), lambda one: self._of.get(one, ()))

    def _named_by(self, key: Key) -> Iterable[Key]:
        return ((key[0], name) for name in self._names.get(key, ()))

    def _name(self, key: Key, names: tuple[str, ...]) -> None:
        namespace, _ = key
        before, now = set(self._names.pop(key, ())), set(names)
        if names:
            self._names[key] = names
        for name in before - now:
            waiting = self._of[namespace, name]
            waiting.discard(key)
            if not waiting:
                del self._of[namespace, name]
        for name in now - before:
            self._of.setdefault((namespace, name), set()).add(key)


def _reached(first: Iterable[Key], following: Callable[[Key], Iterable[Key]]) -> frozenset[Key]:
    """The first jobs, those that follow on them, and so on."""
    found = set(first)
    left = list(found)
    while left:
        new = set(following(left.pop())) - found
        found |= new
        left.extend(new)
    return frozenset(found)
