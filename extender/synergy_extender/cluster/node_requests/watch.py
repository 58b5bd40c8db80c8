"""The watched copy of the requests for nodes."""

from collections.abc import Callable
from typing import Any

from synergy_api.cluster.nodes import Object
from synergy_api.names import LABEL_POOL
from synergy_extender.cluster.node_requests.request import NodeRequest, read_request
from synergy_extender.cluster.trims import VIEW, kept
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import PROVISIONING_REQUESTS


class NodeRequests:
    """The requests in one namespace, kept by a watch. What was written counts before the watch shows it."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self._reflector: Reflector | None = None
        self._written: dict[str, NodeRequest] = {}

    def follow(self, client: KubeClient, on_change: Callable[[], None]) -> Reflector:
        """The watch, for the caller to run."""

        def changed(change: Change) -> None:
            self._written.pop(change.key[1], None)
            if (change.old or {}).get(VIEW) != (change.new or {}).get(VIEW):
                on_change()

        self._reflector = Reflector(
            client,
            PROVISIONING_REQUESTS,
            namespace=self.namespace,
            label_selector=LABEL_POOL,
            trim=_trim,
            on_change=changed,
            optional=True,
        )
        return self._reflector

    def wrote(self, item: Object) -> None:
        """A request that the API server answered with."""
        request = read_request(item)
        if request is not None and (self._reflector is None or not self._reflector.get(self.namespace, request.name)):
            self._written[request.name] = request

    def listed(self) -> tuple[NodeRequest, ...]:
        """All of them, the oldest first."""
        seen = [item[VIEW] for item in self._reflector or () if item[VIEW] is not None]
        return tuple(sorted([*seen, *self._written.values()], key=lambda one: (one.created, one.name)))


def _trim(item: Object) -> dict[str, Any]:
    return {"metadata": kept(item), VIEW: read_request(item)}
