"""Reference jobs: those beside which new jobs of their namespace may be measured."""

from collections.abc import Callable
from dataclasses import replace

from synergy_operator.profile.pairs.references import reference_of
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key
from synergy_operator.views.stored_job import Reference, StoredJob


class ReferenceJobs:
    """All reference jobs, by namespace. They are not parsed when they are looked at, and not kept parsed."""

    def __init__(self, tolerance_percent: Callable[[], int]) -> None:
        """`tolerance_percent` gives the policy's present tolerance for what a job needs."""
        self._tolerance_percent = tolerance_percent
        self._of: dict[str, dict[str, Reference]] = {}
        self._in_order: dict[str, tuple[Reference, ...]] = {}

    def update(self, key: Key, stored: StoredJob | None, job: JobView | None) -> None:
        """Take over what a job is now, as it is kept and parsed; None if it is gone."""
        namespace, name = key
        known = self._of.get(namespace, {})
        new = None if stored is None or job is None else self._read(known.get(name), stored, job)
        if new == known.get(name):
            return
        self._in_order.pop(namespace, None)
        if new is not None:
            self._of.setdefault(namespace, known)[name] = new
            return
        del known[name]
        if not known:
            del self._of[namespace]

    def _read(self, known: Reference | None, stored: StoredJob, job: JobView) -> Reference | None:
        """The check of a large template takes tens of milliseconds, and most reconciles change nothing."""
        tolerance = self._tolerance_percent()
        if known is None or known.tolerance_percent != tolerance or not stored.decides_as(known.stored):
            return reference_of(stored, job, tolerance)
        return known if known.stored is stored else replace(known, stored=stored)

    def beside(self, key: Key) -> tuple[Reference, ...]:
        """The other references of a job's namespace, by name."""
        namespace, name = key
        known = self._of.get(namespace, {})
        if known and namespace not in self._in_order:
            self._in_order[namespace] = tuple(known[one] for one in sorted(known))
        found = self._in_order.get(namespace, ())
        return tuple(one for one in found if one.name != name) if name in known else found

    def outdated(self) -> list[Key]:
        """The references that were taken over with another tolerance. A reconcile of each brings them up to date."""
        now = self._tolerance_percent()
        return [
            (namespace, name)
            for namespace, known in self._of.items()
            for name, one in known.items()
            if one.tolerance_percent != now
        ]
