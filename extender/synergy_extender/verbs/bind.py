"""bind: the last look at the plan and the ledger before the Binding is posted."""

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.names import ANNOTATION_BOUND
from synergy_api.parts.allocation import Allocation
from synergy_extender.cluster.ledger import AssumedBindings, Ledger
from synergy_extender.cluster.views import JobView, PodView
from synergy_extender.failures import NO_ANSWER, explain
from synergy_extender.verbs.place import Refusal
from synergy_extender.verbs.wire import BindingArgs
from synergy_kube import ApiError, Conflict

_LOG = logging.getLogger(__name__)
_UNITS: Mapping[str, tuple[str, int]] = {
    "gpus": ("GPUs", 1),
    "cpu_millis": ("milli-CPU", 1),
    "memory_bytes": ("MiB of memory", 1 << 20),
}


class BindRefused(Exception):  # noqa: N818 - an answer, not a failure
    """The pod is not bound; the text is for the user. `by_ledger` is true where room was missing."""

    def __init__(self, text: str, *, by_ledger: bool = False) -> None:
        super().__init__(text)
        self.by_ledger = by_ledger


class Placements(Protocol):
    """What bind asks of the cluster. Methods raise ApiError, aiohttp.ClientError or TimeoutError."""

    async def pod_now(self, args: BindingArgs) -> PodView | None:
        """The pod of the request, from the watch or, where that is behind, the API server; None if it is gone."""

    async def place_now(self, pod: PodView) -> tuple[str | Refusal, JobView | None]:
        """Where the plan wants the pod, from the API server where the watch may be behind."""

    def members(self, pod: PodView) -> list[PodView]:
        """The pods of the pod's run that have not ended, itself included."""

    def ledger(self) -> Ledger:
        """What is free now."""

    def in_the_way(self, pod: PodView, node: str, allocation: Allocation) -> str | None:
        """Why the pod might come to another GPU of the node than the plan gives it; None where it will not."""

    async def post_binding(self, pod: PodView, body: Mapping[str, Any]) -> None:
        """Create the pod's binding."""

    async def bound_node(self, pod: PodView) -> str:
        """Where the API server has the pod bound; empty if nowhere, or if it is not the same pod any more."""


class Binder:
    """Binds pods, one call for each. Calls may run at the same time: from the look at the ledger to the record in
    `assumed` nothing else runs."""

    def __init__(self, placements: Placements, assumed: AssumedBindings) -> None:
        self._placements = placements
        self._assumed = assumed

    async def bind(self, args: BindingArgs) -> None:
        """Bind the pod to the node. Binding it again to the same node is no error.

        Raises BindRefused with a text for the user.
        """
        try:
            await self._bind(args)
        except ApiError as error:
            raise BindRefused(f"the API server refused: {error}") from error
        except NO_ANSWER as error:
            raise BindRefused(f"the API server cannot be reached ({explain(error)})") from error

    async def _bind(self, args: BindingArgs) -> None:
        pod = await self._placements.pod_now(args)
        if pod is None:
            raise BindRefused("the pod is gone, or another has taken its name")
        if pod.node == args.node:
            return
        place, job = await self._placements.place_now(pod)
        if isinstance(place, Refusal) or job is None or job.status.allocation is None:
            raise BindRefused(place.why.value if isinstance(place, Refusal) else "its TrainingJob does not exist")
        if place != args.node:
            raise BindRefused(f"the plan gave this pod node {place}, not {args.node}")
        allocation = job.status.allocation
        check_gang(pod, self._placements.members(pod), allocation, self._placements.ledger(), self._assumed)
        blocker = self._placements.in_the_way(pod, args.node, allocation)
        if blocker is not None:
            raise BindRefused(blocker)
        self._assumed.add(pod, args.node)
        await self._post(pod, args.node, allocation)

    async def _post(self, pod: PodView, node: str, allocation: Allocation) -> None:
        try:
            await self._placements.post_binding(pod, binding_body(pod, node, allocation))
        except Conflict:
            if await self._placements.bound_node(pod) != node:
                self._assumed.remove(pod.uid)
                raise
        except ApiError as error:
            if error.code < 500:  # after a server's error, as after a timeout, it may be bound all the same
                self._assumed.remove(pod.uid)
            raise


def binding_body(pod: PodView, node: str, allocation: Allocation) -> dict[str, Any]:
    """The Binding; by the UID the API server refuses a pod that has taken the name since."""
    recorded = json.dumps({"run": allocation.run, "round": allocation.round})
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "annotations": {ANNOTATION_BOUND: recorded},
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def check_gang(
    pod: PodView, members: Iterable[PodView], allocation: Allocation, ledger: Ledger, assumed: AssumedBindings
) -> None:
    """Raises BindRefused, naming the node and what is missing, unless every planned node has room for the unbound pods
    of the gang, and none gets more GPUs than the plan gave the run there.
    """
    asked: dict[str, Amounts] = {}
    gpus: dict[str, int] = {}
    for member in {m.uid: m for m in (*members, pod)}.values():
        node = member.node or assumed.node_of(member.uid) or member.planned_node
        gpus[node] = gpus.get(node, 0) + member.requests.gpus
        if not member.node and not assumed.node_of(member.uid):
            asked[node] = asked.get(node, NOTHING).plus(member.requests)
    given = {share.node: share.devices or share.gpus for share in allocation.workers}
    for node, count in gpus.items():
        if count > given.get(node, 0):
            plan = given.get(node, 0)
            raise BindRefused(
                f"on node {node} the pods of the run ask for more GPUs ({count}) than the plan gave ({plan})"
            )
    for node, amounts in asked.items():
        free = ledger.free(node)
        if not amounts.fits(free):
            raise BindRefused(f"node {node} has no room for the job: {_missing(amounts, free)}", by_ledger=True)


def _missing(asked: Amounts, free: Amounts) -> str:
    short = [
        f"{want // unit} {name} asked for, {max(0, have) // unit} free"
        for want, have, (name, unit) in zip(asked, free, (_UNITS[f] for f in Amounts._fields), strict=True)
        if want > have
    ]
    return "; ".join(short)
