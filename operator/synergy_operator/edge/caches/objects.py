"""Local copies of API objects that include the operator's own writes at once.

The watch delivers every change sooner or later. The API server's answer to a write is kept immediately, so the next
reconcile sees what the last one did. Of two copies of an object the one with the greater resourceVersion is newer.
Kubernetes itself compares them so since 1.35, and its storage always has.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

from synergy_operator.views.metadata import Key

_REMEMBERED_DELETIONS: Final = 4096


class Named(Protocol):
    """The fields that a cached object has."""

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
        """The object of this key, or None."""
        return self._items.get(key)

    def keep(self, view: View) -> bool:
        """Keep a copy. Return False if it is older than the present one, or if the object is known to be deleted."""
        key = (view.namespace, view.name)
        old = self._items.get(key)
        if view.uid in self._gone or (old is not None and not _newer(view, old)):
            return False
        self._items[key] = view
        return True

    def drop(self, key: Key, uid: str | None = None) -> View | None:
        """Remove a deleted object, with `uid` only that very one. A late answer does not bring it back."""
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
    """Objects that belong to TrainingJobs, also found by job."""

    def __init__(self) -> None:
        super().__init__()
        self._by_job: dict[Key, set[Key]] = {}

    def keep(self, view: OwnedView) -> bool:
        """As in ObjectCache."""
        key = (view.namespace, view.name)
        before = self.get(key)
        kept = super().keep(view)
        if kept:
            if before is not None:
                self._unlist(before)
            self._by_job.setdefault((view.namespace, view.job), set()).add(key)
        return kept

    def drop(self, key: Key, uid: str | None = None) -> OwnedView | None:
        """As in ObjectCache."""
        gone = super().drop(key, uid)
        if gone is not None:
            self._unlist(gone)
        return gone

    def of_job(self, job: Key) -> list[OwnedView]:
        """The objects of one TrainingJob, by name."""
        found = [self.get(key) for key in sorted(self._by_job.get(job, ()))]
        return [view for view in found if view is not None]

    def _unlist(self, view: OwnedView) -> None:
        owner = (view.namespace, view.job)
        names = self._by_job[owner]
        names.discard((view.namespace, view.name))
        if not names:
            del self._by_job[owner]


def _newer(view: Named, old: Named) -> bool:
    if view.resource_version.isdecimal() and old.resource_version.isdecimal():
        return int(view.resource_version) > int(old.resource_version)
    return view.resource_version != old.resource_version
