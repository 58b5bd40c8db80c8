"""Writes of managed objects. The API server's answers go into the cache at once."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from synergy_api.names import ANNOTATION_STATUS, MANAGER_OPERATOR
from synergy_api.reasons import Reason, say
from synergy_api.timestamps import format_time
from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.events import Subject, post_event
from synergy_kube.resources import TRAINING_JOBS, Resource
from synergy_operator.actions import AdoptOwner, MarkOwner, SetSuspended, ShowOnOwner
from synergy_operator.edge.caches.objects import ObjectCache
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.refused_starts import REFUSED
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.job.managed.follow import NOT_MANAGED
from synergy_operator.views.owners.kinds import KINDS
from synergy_operator.views.owners.view import OwnerView, read_owner

RESOURCES: Final = {
    name: Resource(kind.group, kind.version, kind.plural, kind.name, namespaced=True) for name, kind in KINDS.items()
}
_DROPPED: Final = (
    "its CustomResourceDefinition keeps no marks in its pod templates (of a TrainJob, spec.podTemplateOverrides, which "
    "Trainer 2.1 has)"
)


class OwnerWriter:
    """Suspends, resumes and marks managed objects, makes their TrainingJobs, and tells them what becomes of those."""

    def __init__(
        self,
        client: KubeClient,
        caches: Mapping[str, ObjectCache[OwnerView]],
        events: EventQueue,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._caches = caches
        self._events = events
        self._clock = clock

    async def set_suspended(self, namespace: str, action: SetSuspended) -> None:
        """Suspend or resume an object."""
        value: Any = action.suspended
        for part in reversed(KINDS[action.kind].suspended):
            value = {part: value}
        await self._patch(namespace, action.kind, action.name, action.uid, {"spec": value})

    async def mark(self, namespace: str, action: MarkOwner) -> None:
        """Write the marks into the templates. A refusal is told on the object."""
        body = {"metadata": {"resourceVersion": action.version}, "spec": action.spec}
        try:
            await self._patch(namespace, action.kind, action.name, action.uid, body)
        except ApiError as error:
            await self._refused(namespace, action, error)
            raise
        kept = self._caches[action.kind].get((namespace, action.name))
        if kept is not None and kept.marked_spec is not None:
            await self._tell_why_not(namespace, action, _DROPPED)
            raise TryAgain(_DROPPED)

    async def adopt(self, namespace: str, action: AdoptOwner) -> None:
        """Create the TrainingJob of an object. A refusal, for example by a quota, is told on the object."""
        try:
            await self._client.create(TRAINING_JOBS, action.manifest, namespace)
        except Conflict as error:
            raise TryAgain(error.message) from error
        except ApiError as error:
            await self._refused(namespace, action, error)
            raise

    async def _refused(self, namespace: str, action: MarkOwner | AdoptOwner, error: ApiError) -> None:
        """Tell the object what the API server would refuse again, and raise TryAgain. Of other errors nothing is
        told."""
        if error.code not in REFUSED:
            return
        await self._tell_why_not(namespace, action, error.message)
        raise TryAgain(error.message) from error

    async def _tell_why_not(self, namespace: str, action: MarkOwner | AdoptOwner, problem: str) -> None:
        finding = say(Reason.NOT_MANAGED, object=f"{action.kind} {action.name}", problem=problem)
        told = ShowOnOwner(
            action.kind, action.name, action.uid, NOT_MANAGED, "Warning", finding.reason, finding.message
        )
        await self.show(namespace, told)

    async def show(self, namespace: str, action: ShowOnOwner) -> None:
        """Write the annotation, and post an event if it says something new."""
        cached = self._caches[action.kind].get((namespace, action.name))
        if cached is not None and cached.shown == action.text:
            return
        body = {"metadata": {"annotations": {ANNOTATION_STATUS: action.text}}}
        await self._patch(namespace, action.kind, action.name, action.uid, body)
        subject = Subject(RESOURCES[action.kind], action.name, action.uid, namespace)
        post: Callable[[], Awaitable[None]] = partial(
            post_event,
            self._client,
            subject,
            kind=action.event,
            reason=action.reason,
            message=action.message,
            component=MANAGER_OPERATOR,
            at=format_time(float(int(self._clock()))),
        )
        self._events.add(action.uid, post)

    async def _patch(self, namespace: str, kind: str, name: str, uid: str, body: Mapping[str, Any]) -> None:
        body = {**body, "metadata": {**(body.get("metadata") or {}), "uid": uid}}
        try:
            answer = await self._client.merge_patch(RESOURCES[kind], name, body, namespace)
        except NotFound:
            self._caches[kind].drop((namespace, name), uid)
        except Conflict as error:
            raise TryAgain(f"{kind} {name} has changed since it was read") from error
        else:
            self._caches[kind].keep(read_owner(KINDS[kind], answer))
