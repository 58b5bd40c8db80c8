"""Local copies of objects that know what was written a moment ago.

The watch brings every change sooner or later; what the API server answered to our own writes is kept at once, so that
the next look sees what the last one did. Of two copies of an object the one with the greater resourceVersion is right
(Kubernetes compares them so itself since 1.35, and its storage always has).
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

from synergy_operator.views.metadata import Key

_REMEMBERED_DELETIONS: Final = 4096


class Named(Protocol):
    """What a cached object must tell."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


View = TypeVar("View", bound=Named)


class ObjectCache(Generic[View]):
    """Objects of one kind by namespace and name."""

    def __init__(self) -> None:
        self._items: dict[Key, View] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()

    def __iter__(self) -> Iterator[View]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Key) -> View | None:
        """One object."""
        return self._items.get(key)

    def keep(self, view: View) -> bool:
        """Take a copy; false if it is older than what is there, or of an object that is known to be gone."""
        key = (view.namespace, view.name)
        old = self._items.get(key)
        if view.uid in self._gone or (old is not None and not _newer(view, old)):
            return False
        self._items[key] = view
        return True

    def drop(self, key: Key, uid: str | None = None) -> View | None:
        """Forget an object that is gone, with `uid` only that very one; a late answer does not bring it back."""
        old = self._items.get(key)
        if old is None or (uid is not None and old.uid != uid):
            return None
        del self._items[key]
        self._gone[old.uid] = None
        if len(self._gone) > _REMEMBERED_DELETIONS:
            self._gone.popitem(last=False)
        return old


class Owned(Named, Protocol):
    """A cached object that belongs to a TrainingJob by its label."""

    @property
    def job(self) -> str: ...


OwnedView = TypeVar("OwnedView", bound=Owned)


class OwnedCache(ObjectCache[OwnedView]):
    """Objects that belong to TrainingJobs, found by their job as well."""

    def __init__(self) -> None:
        super().__init__()
        self._by_job: dict[Key, set[Key]] = {}

    def keep(self, view: OwnedView) -> bool:
        """As in Cache."""
        kept = super().keep(view)
        if kept:
            self._by_job.setdefault((view.namespace, view.job), set()).add((view.namespace, view.name))
        return kept

    def drop(self, key: Key, uid: str | None = None) -> OwnedView | None:
        """As in Cache."""
        gone = super().drop(key, uid)
        if gone is not None:
            owner = (gone.namespace, gone.job)
            names = self._by_job[owner]
            names.discard(key)
            if not names:
                del self._by_job[owner]
        return gone

    def of_job(self, job: Key) -> list[OwnedView]:
        """The objects of one TrainingJob, by name."""
        found = [self.get(key) for key in sorted(self._by_job.get(job, ()))]
        return [view for view in found if view is not None]


def _newer(view: Named, old: Named) -> bool:
    if view.resource_version.isdecimal() and old.resource_version.isdecimal():
        return int(view.resource_version) > int(old.resource_version)
    return view.resource_version != old.resource_version
