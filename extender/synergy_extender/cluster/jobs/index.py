"""All TrainingJobs that parse, each as the newest of what the watch and answers have shown."""

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from synergy_api.cluster.nodes import Object
from synergy_api.parts.relations.clusters import managed_elsewhere
from synergy_extender.cluster.trims import VIEW, kept
from synergy_extender.cluster.views import JobView, Key, begins_to_wait, matters, read_job
from synergy_kube import Change

_LOG = logging.getLogger(__name__)
_REMEMBERED_DELETIONS = 4096


class JobIndex:
    """The views of the jobs by key. `on_change` is called after each change that decisions depend on."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._gone: OrderedDict[str, None] = OrderedDict()
        self.views: dict[Key, JobView] = {}
        self.arrivals = 0
        """How many times a job has begun to wait for a place."""

    def observe(self, item: Object, *, decided: bool = False) -> None:
        """Take a TrainingJob that the API server answered with, if it is newer than what the watch has brought. A
        change that this replica has `decided` itself is no reason to decide again.

        One that comes after the job's end does not bring it back: nothing would ever release what it holds.
        """
        view = self.trim(item).get(VIEW)
        if isinstance(view, JobView):
            self._take(view, decided=decided)

    def trim(self, item: Object) -> dict[str, Any]:
        """What is kept of a TrainingJob. What an answer has shown already is not read again from the watch. A job that
        another controller manages has no view: no plan has it."""
        metadata = item["metadata"]
        if managed_elsewhere(item.get("spec") or {}):
            return {"metadata": kept(item)}
        known = self.views.get(Key(metadata.get("namespace", ""), metadata["name"]))
        if known is not None and (known.uid, known.resource_version) == (metadata["uid"], metadata["resourceVersion"]):
            return {"metadata": kept(item), VIEW: known}
        try:
            return {"metadata": kept(item), VIEW: read_job(item)}
        except ValueError as error:
            _LOG.warning("TrainingJob %s/%s is left alone: %s", metadata.get("namespace"), metadata["name"], error)
            return {"metadata": kept(item)}

    def changed(self, change: Change) -> None:
        """Take a change that the watch brought, trimmed."""
        key = Key(*change.key)
        view = change.new.get(VIEW) if change.new is not None else None
        if isinstance(view, JobView):
            self._take(view)
        elif change.new is None:
            self._is_gone(key, (change.old or {}).get(VIEW))
        elif self.views.pop(key, None) is not None:
            self._on_change()

    def vanished(self, job: JobView) -> None:
        """The API server does not have this job any more. The watch tells so too, unless only an answer has ever shown
        the job: nothing would release what it holds."""
        known = self.views.get(job.key)
        if known is not None and known.uid == job.uid:
            self._is_gone(job.key, known)

    def _take(self, view: JobView, *, decided: bool = False) -> None:
        known = self.views.get(view.key)
        if view.uid in self._gone:
            return
        if known is not None and known.uid == view.uid and int(known.resource_version) > int(view.resource_version):
            return
        self.views[view.key] = view
        self.arrivals += begins_to_wait(known, view)
        if not decided and (known is None or matters(known) != matters(view)):
            self._on_change()

    def _is_gone(self, key: Key, view: JobView | None) -> None:
        """One that has taken the name since, and is known from an answer already, stays."""
        known = self.views.get(key)
        if view is not None:
            self._gone[view.uid] = None
            if len(self._gone) > _REMEMBERED_DELETIONS:
                self._gone.popitem(last=False)
        if known is not None and (view is None or known.uid == view.uid):
            del self.views[key]
            self._on_change()
