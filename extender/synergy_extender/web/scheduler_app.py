"""The scheduler verbs over HTTP, for kube-scheduler alone (the server asks for its client certificate).

Every answer has status 200: with another one the kube-scheduler hides the reason from the user. Bodies are decoded with
msgspec, because filter runs inside the scheduler's serial loop.
"""

import logging
from collections.abc import Callable

import msgspec

from synergy_api.names import ANNOTATION_PLANNED_NODE
from synergy_extender.cluster.views import RunMember, member_of
from synergy_extender.failures import CALL_FAILED, explain
from synergy_extender.metrics import Metrics
from synergy_extender.verbs.bind import Binder, BindRefused
from synergy_extender.verbs.place import Refusal
from synergy_extender.verbs.placements import ClusterPlacements
from synergy_extender.verbs.scheduling import filter_nodes, prioritize_nodes, refuse_preemption
from synergy_extender.verbs.wire import BindingArgs, BindingResult, ExtenderArgs, FilterResult, PodMetadata
from synergy_extender.web.verb_routes import verbs_app
from synergy_service.limits import App, LimitBody
from synergy_service.tracing import span

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 64 << 20
"""Room for a few thousand whole nodes."""

_ARGS = msgspec.json.Decoder(ExtenderArgs)
_BINDING = msgspec.json.Decoder(BindingArgs)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a request raises: for bytes that are no UTF-8, and for lists in lists without end, msgspec raises
Python's own errors."""

NOT_SYNCED = "the extender has not read the cluster yet"


class SchedulerVerbs:
    """Handlers of the four verbs."""

    def __init__(
        self,
        placements: ClusterPlacements,
        binder: Binder,
        metrics: Metrics,
        synced: Callable[[], bool],
    ) -> None:
        self._placements = placements
        self._binder = binder
        self._metrics = metrics
        self._synced = synced

    async def filter(self, body: bytes) -> object:
        """Lets the planned node pass."""
        try:
            args = _ARGS.decode(body)
            if not self._synced():
                return FilterResult(error=NOT_SYNCED)
            with span("filter", namespace=args.pod.metadata.namespace, pod=args.pod.metadata.name):
                place = await self._place(args.pod.metadata)
                if isinstance(place, Refusal):
                    self._metrics.verbs.refusals.labels("filter").inc()
                return filter_nodes(args, place)
        except _UNREADABLE as error:
            return FilterResult(error=f"not a filter request: {error}")
        except CALL_FAILED as error:
            return FilterResult(error=f"the API server did not answer: {explain(error)}")

    async def prioritize(self, body: bytes) -> object:
        """Prefers the planned node. There is no field for an error: what cannot be judged gets no score."""
        try:
            args = _ARGS.decode(body)
            return prioritize_nodes(args, await self._place(args.pod.metadata))
        except (*_UNREADABLE, *CALL_FAILED) as error:
            _LOG.warning("prioritize: %s", explain(error))
            return []

    async def bind(self, body: bytes) -> object:
        """Binds, or says why not."""
        try:
            args = _BINDING.decode(body)
        except _UNREADABLE as error:
            return BindingResult(error=f"not a bind request: {error}")
        if not self._synced():
            return BindingResult(error=NOT_SYNCED)
        try:
            with span("bind", namespace=args.pod_namespace, pod=args.pod_name, node=args.node):
                await self._binder.bind(args)
        except BindRefused as refusal:
            self._metrics.verbs.refusals.labels("bind").inc()
            if refusal.by_ledger:
                self._metrics.verbs.ledger_refusals.inc()
            _LOG.info("bind of %s/%s to %s refused: %s", args.pod_namespace, args.pod_name, args.node, refusal)
            return BindingResult(error=str(refusal))
        return BindingResult()

    async def preempt(self, body: bytes) -> object:
        """Never evicts anybody."""
        _LOG.info("preempt: no victims; the plan decides at a round's end which runs leave")
        return refuse_preemption()

    async def _place(self, pod: PodMetadata) -> str | Refusal:
        place, _ = await self._placements.place(
            pod.name, _member(pod), (pod.annotations or {}).get(ANNOTATION_PLANNED_NODE, "")
        )
        return place


def scheduler_app(verbs: SchedulerVerbs, metrics: Metrics) -> App:
    """The ASGI application. Its OpenAPI document is at /openapi.json."""
    handlers = {"filter": verbs.filter, "prioritize": verbs.prioritize, "bind": verbs.bind, "preempt": verbs.preempt}
    return LimitBody(verbs_app(handlers, metrics), _MOST_BYTES)


def _member(pod: PodMetadata) -> RunMember | None:
    return member_of({"metadata": {"namespace": pod.namespace, "labels": pod.labels or {}}})
