"""The TrainingJobs, kept as JSON. The views of those that were looked at last are kept too."""

import logging
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from synergy_api.parts.relations.clusters import managed_elsewhere
from synergy_operator.edge.caches.objects import ObjectCache
from synergy_operator.edge.trimming import VIEW, kept_metadata
from synergy_operator.edge.work_queue import FairQueue
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key, Object
from synergy_operator.views.stored_job import StoredJob, store_job

_LOG = logging.getLogger(__name__)
_MOST_VIEWS: Final = 256
"""Some times the workers that reconcile at once: a job is looked at several times while its writes are under way."""
_MOST_VIEW_BYTES: Final = 2 << 20
"""Of all jobs together whose views are kept, as JSON. A view takes up to 25 times as much."""


class JobCache:
    """As `ObjectCache`, with jobs as they come from the API server."""

    def __init__(self, most_views: int = _MOST_VIEWS) -> None:
        self._stored: ObjectCache[StoredJob] = ObjectCache()
        self._views: OrderedDict[Key, tuple[StoredJob, JobView]] = OrderedDict()
        self._most_views = most_views
        self._view_bytes = 0
        self._unfinished: dict[str, dict[Key, None]] = {}

    def __len__(self) -> int:
        return len(self._stored)

    def __iter__(self) -> Iterator[StoredJob]:
        return iter(self._stored)

    def get(self, key: Key) -> JobView | None:
        """The job of this key, or None."""
        stored = self._stored.get(key)
        return None if stored is None else self._view(stored)

    def stored(self, key: Key) -> StoredJob | None:
        """The job of this key as it is kept, or None."""
        return self._stored.get(key)

    def is_placed(self, key: Key) -> bool:
        """Whether the job is known and has a place, is about to take one, or is about to leave it."""
        stored = self._stored.get(key)
        return stored is not None and stored.placed

    def read(self, item: Object) -> StoredJob:
        """A job to be kept. It is parsed only if it decides otherwise than the present copy.

        Raises ValueError if its status does not parse, KeyError or TypeError if it is not an object of Kubernetes.
        """
        stored = store_job(item)
        known = self._stored.get(stored.key)
        if known is not None and stored.decides_as(known):
            if stored.fleeting != known.fleeting:
                stored.check_fleeting()
            return replace(stored, body=known.body)
        self._remember(stored, stored.view())
        return stored

    def trim(self, item: dict[str, Any]) -> dict[str, Any]:
        """What a reflector keeps of a job. A version that the answer to one of the operator's own writes has brought
        already is not read again. Of a job that does not parse, or that another controller manages, only the metadata
        is kept: nothing acts on it, or only on the last copy that did parse."""
        kept = kept_metadata(item)
        if managed_elsewhere(item.get("spec") or {}):
            return {"metadata": kept}
        known = self._stored.get((kept["namespace"], kept["name"]))
        if known is not None and (known.uid, known.resource_version) == (kept["uid"], kept["resourceVersion"]):
            return {"metadata": kept, VIEW: known}
        try:
            return {"metadata": kept, VIEW: self.read(item)}
        except (KeyError, TypeError, ValueError) as error:
            what = "is skipped" if known is None else "stays as it was read last"
            _LOG.error("TrainingJob %s/%s %s: %s", kept["namespace"], kept["name"], what, error)
            return {"metadata": kept}

    def keep(self, stored: StoredJob) -> bool:
        """Keep a copy. Return False if it is older than the present one, or if the job is known to be deleted."""
        before = self._stored.get(stored.key)
        if not self._stored.keep(stored):
            return False
        self._list(before, stored)
        return True

    def take(self, item: Object) -> JobView:
        """Keep a job that an answer of the API server has brought, unless a newer copy is there. Return its view.

        Raises ValueError if its status does not parse.
        """
        stored = self.read(item)
        self.keep(stored)
        return self._view(stored)

    def drop(self, key: Key, uid: str | None = None) -> StoredJob | None:
        """As in ObjectCache."""
        gone = self._stored.drop(key, uid)
        if gone is not None:
            self._forget_view(key)
            self._list(gone, None)
        return gone

    def unfinished(self, fingerprint: str | None = None) -> list[Key]:
        """The jobs that have not ended; with `fingerprint` those of one fingerprint."""
        if fingerprint is not None:
            return list(self._unfinished.get(fingerprint, ()))
        return [key for keys in self._unfinished.values() for key in keys]

    def _view(self, stored: StoredJob) -> JobView:
        known = self._views.get(stored.key)
        if known is not None and known[0] is stored:
            self._views.move_to_end(stored.key)
            return known[1]
        view = stored.view()
        self._remember(stored, view)
        return view

    def _remember(self, stored: StoredJob, view: JobView) -> None:
        """Keep a view, and forget those that were looked at longest ago."""
        self._forget_view(stored.key)
        self._views[stored.key] = (stored, view)
        self._view_bytes += len(stored.body)
        while len(self._views) > self._most_views or self._view_bytes > _MOST_VIEW_BYTES:
            self._forget_view(next(iter(self._views)))

    def _forget_view(self, key: Key) -> None:
        known = self._views.pop(key, None)
        if known is not None:
            self._view_bytes -= len(known[0].body)

    def _list(self, before: StoredJob | None, after: StoredJob | None) -> None:
        """Bring the lists of unfinished jobs up to date."""
        old = before.fingerprint if before is not None and not before.finished else None
        new = after.fingerprint if after is not None and not after.finished else None
        if old == new:
            return
        if before is not None and old is not None:
            keys = self._unfinished[old]
            del keys[before.key]
            if not keys:
                del self._unfinished[old]
        if after is not None and new is not None:
            self._unfinished.setdefault(new, {})[after.key] = None


def turns(jobs: JobCache) -> FairQueue[Key]:
    """The order of reconciles: namespaces take turns, and in each the jobs that have a place with those that have none.
    So starts do not wait behind thousands of new jobs."""
    return FairQueue(lambda key: key[0], lambda: FairQueue(jobs.is_placed))
