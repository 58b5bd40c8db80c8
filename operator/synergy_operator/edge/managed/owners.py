"""Managed objects: reflectors that follow them, and a queue in which each gets its TrainingJob.

A kind that the API server does not have counts as empty. Its objects are followed within seconds after its
CustomResourceDefinition has come.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from synergy_api.names import LABEL_MANAGED
from synergy_kube import Change, KubeClient, Reflector
from synergy_operator.actions import AdoptOwner, MarkOwner, SetSuspended, ShowOnOwner
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.caches.objects import ObjectCache
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.managed.writer import RESOURCES, OwnerWriter
from synergy_operator.edge.trimming import VIEW, trimmed
from synergy_operator.edge.work_queue import FairQueue, WorkQueue
from synergy_operator.job.managed.follow import NOT_MANAGED, follow_owner
from synergy_operator.views.cluster import ClusterView
from synergy_operator.views.job import JobView
from synergy_operator.views.metadata import Key
from synergy_operator.views.owners.kinds import KINDS
from synergy_operator.views.owners.view import OwnerView, read_owner
from synergy_operator.views.pod import PodView
from synergy_operator.views.stored_job import StoredJob

OwnerKey = tuple[str, str, str]
"""(kind, namespace, name)."""
SETTLE_SECONDS: Final = 3.0
"""How long after the operator has suspended a running object its controllers may still be making pods, and say so only
with their next write: a Job's controller gathers its writes for a second."""
_SELECTOR: Final = f"{LABEL_MANAGED}=true"


class Owners:
    """The managed objects of some kinds. `wake` has a TrainingJob reconciled."""

    def __init__(
        self,
        client: KubeClient,
        kinds: Iterable[str],
        *,
        cluster: Callable[[], ClusterView],
        jobs: JobCache,
        events: EventQueue,
        clock: Callable[[], float],
        wake: Callable[[Key], None],
        on_restart: Callable[[str, str], None],
    ) -> None:
        self._cluster = cluster
        self._jobs = jobs
        self._wake = wake
        self._clock = clock
        self._settled_at: dict[OwnerKey, float] = {}
        self._caches: dict[str, ObjectCache[OwnerView]] = {kind: ObjectCache() for kind in kinds}
        self._queue: WorkQueue[OwnerKey] = WorkQueue(self._follow, workers=4, line=FairQueue(lambda key: key[1]))
        self.writer = OwnerWriter(client, self._caches, events, clock)
        self.reflectors = tuple(
            Reflector(
                client,
                RESOURCES[kind],
                label_selector=_SELECTOR,
                trim=trimmed(partial(read_owner, KINDS[kind])),
                on_change=partial(self._changed, kind),
                on_restart=on_restart,
                optional=True,
            )
            for kind in self._caches
        )

    async def run(self) -> None:
        """Make and follow TrainingJobs until cancelled."""
        await self._queue.run()

    def of(self, job: JobView) -> OwnerView | None:
        """The object that a TrainingJob starts and stops; None if it has none, or not that one any more."""
        managed = job.spec.managed if job.spec is not None else None
        cache = self._caches.get(managed.kind) if managed is not None else None
        owner = cache.get((job.namespace, managed.name)) if cache is not None and managed is not None else None
        return owner if owner is not None and (owner.uid, owner.job) == (job.controller, job.name) else None

    def job_changed(self, job: StoredJob | None) -> None:
        """A TrainingJob came, changed or went."""
        if job is not None and job.managed is not None and job.managed[0] in self._caches:
            kind, name = job.managed
            self._queue.add((kind, job.namespace, name))

    def cluster_changed(self) -> None:
        """Nodes or pools came, changed or went."""
        for cache in self._caches.values():
            for view in cache:
                if view.shown == NOT_MANAGED:
                    self._queue.add((view.kind, view.namespace, view.name))

    def _changed(self, kind: str, change: Change) -> None:
        view: OwnerView | None = (change.new or change.old or {}).get(VIEW)
        if view is None:
            return
        if change.new is None:
            self._caches[kind].drop(change.key)
            self._settled_at.pop((kind, *change.key), None)
        else:
            self._caches[kind].keep(view)
        self._queue.add((kind, *change.key))
        self._wake((view.namespace, view.job))

    async def _follow(self, key: OwnerKey) -> float | None:
        kind, namespace, name = key
        owner = self._caches[kind].get((namespace, name))
        if owner is None:
            return None
        types = self._cluster().grown.types_of_templates
        for action in follow_owner(owner, self._jobs.get((namespace, owner.job)), types):
            match action:
                case SetSuspended():
                    self._settled_at[key] = self._clock() + SETTLE_SECONDS
                    await self.writer.set_suspended(namespace, action)
                case MarkOwner() | AdoptOwner() if (wait := self._settled_at.get(key, 0.0) - self._clock()) > 0:
                    return wait
                case MarkOwner():
                    await self.writer.mark(namespace, action)
                case AdoptOwner():
                    self._settled_at.pop(key, None)
                    await self.writer.adopt(namespace, action)
                    return None  # the watch brings the TrainingJob
                case ShowOnOwner():
                    await self.writer.show(namespace, action)
            return 0.0
        return None


def unclaimed(owner: OwnerView | None, pods: Iterable[PodView]) -> tuple[PodView, ...]:
    """The pods of an object that no run has yet."""
    if owner is None:
        return ()
    return tuple(pod for pod in pods if pod.managed_by == owner.uid and pod.run < 0 and not pod.terminal and pod.gated)
