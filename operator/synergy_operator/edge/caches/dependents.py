"""Jobs that wait for other jobs, by the jobs that they wait for."""

from synergy_api.resources.training_job import FINISHED
from synergy_operator.job.dependencies import named_by
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key


class Dependents:
    """Which jobs name which others in spec.after."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[str, ...]] = {}
        self._names: dict[Key, frozenset[str]] = {}
        self._of: dict[Key, set[Key]] = {}

    def update(self, key: Key, job: JobView | None) -> frozenset[Key]:
        """Take over a job as it is now; None if it is gone. Return the jobs whose waiting this may change: those that
        wait for it, those that wait for these, and so on, since jobs can wait for each other."""
        names = frozenset() if job is None else frozenset(named_by(job))
        self._name(key, names)
        phase = "" if job is None or job.status.phase not in FINISHED else str(job.status.phase)
        seen = () if job is None else (job.uid, phase, *sorted(names))
        if self._seen.get(key, ()) == seen:
            return frozenset()
        if seen:
            self._seen[key] = seen
        else:
            self._seen.pop(key, None)
        return self._waiting_for(key)

    def _waiting_for(self, key: Key) -> frozenset[Key]:
        found: set[Key] = set()
        left = [key]
        while left:
            new = self._of.get(left.pop(), set()) - found
            found |= new
            left.extend(new)
        return frozenset(found)

    def _name(self, key: Key, names: frozenset[str]) -> None:
        namespace, _ = key
        before = self._names.pop(key, frozenset())
        if names:
            self._names[key] = names
        for name in before - names:
            waiting = self._of[namespace, name]
            waiting.discard(key)
            if not waiting:
                del self._of[namespace, name]
        for name in names - before:
            self._of.setdefault((namespace, name), set()).add(key)
