"""What the verbs look up: from the watch, and from the API server where the watch may be behind."""

from collections.abc import Mapping
from typing import Any

from synergy_api.parts.allocation import Allocation
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.fresh import FreshLook
from synergy_extender.cluster.ledger import Ledger
from synergy_extender.cluster.views import JobView, Key, PodView, RunMember
from synergy_extender.colocation.order import group_of, in_the_way, occupancy
from synergy_extender.verbs.place import Refusal, place_of
from synergy_extender.verbs.wire import BindingArgs
from synergy_kube import KubeClient
from synergy_kube.resources import PODS


class ClusterPlacements:
    """Pods, jobs and room of the real cluster."""

    def __init__(self, client: KubeClient, cache: ClusterCache) -> None:
        self._client = client
        self._cache = cache
        self._fresh = FreshLook(client, cache)

    async def place(
        self, name: str, member: RunMember | None, planned_node: str
    ) -> tuple[str | Refusal, JobView | None]:
        """Where the plan wants the pod. Before a refusal that a late watch could explain, it reads the API server.
        Raises ApiError, aiohttp.ClientError or TimeoutError."""
        job = self._cache.jobs.get(member.job) if member is not None else None
        place = place_of(name, member, planned_node, job)
        if member is None or not isinstance(place, Refusal) or not place.may_be_behind:
            return place, job
        job = await self._fresh.job(member.job)
        return place_of(name, member, planned_node, job), job

    async def place_now(self, pod: PodView) -> tuple[str | Refusal, JobView | None]:
        """`place` of a pod that is known."""
        return await self.place(pod.name, pod.member, pod.planned_node)

    async def pod_now(self, args: BindingArgs) -> PodView | None:
        """The pod of the request; None if it is gone or another has taken its name."""
        pod = self._cache.pods.get(args.pod_namespace, args.pod_name)
        if pod is None or pod.uid != args.pod_uid:
            pod = await self._fresh.pod(Key(args.pod_namespace, args.pod_name))
        return pod if pod is not None and pod.uid == args.pod_uid and not pod.terminal else None

    def members(self, pod: PodView) -> list[PodView]:
        """The pods of the pod's run that have not ended, itself included."""
        if pod.member is None:
            return [pod]
        known = self._cache.pods.of_run(pod.member.job, pod.member.run)
        return known if any(member.uid == pod.uid for member in known) else [*known, pod]

    def ledger(self) -> Ledger:
        """What is free now."""
        return self._cache.ledger()

    def in_the_way(self, pod: PodView, node: str, allocation: Allocation) -> str | None:
        """Why the pod might come to another GPU of the node than the plan gives it; None where it will not."""
        capacity = next((one for one in self._cache.capacities() if one.name == node and one.by_order), None)
        if capacity is None or pod.member is None:
            return None
        on_their_way = {other.uid: other for other in self._cache.assumed.pods_to(node)}
        there = {**on_their_way, **{other.uid: other for other in self._cache.pods.on_node(node)}}
        others = [other for other in there.values() if other.member is None or not _same_run(other, pod)]
        found = occupancy(others, self._cache.jobs, capacity.replicas)
        return in_the_way(group_of(pod.member.job, allocation), capacity, found)

    async def post_binding(self, pod: PodView, body: Mapping[str, Any]) -> None:
        """Create the pod's binding."""
        await self._client.create_subresource(PODS, pod.name, "binding", body, pod.namespace)

    async def bound_node(self, pod: PodView) -> str:
        """Where the API server has the pod bound; empty if nowhere, or if it is not the same pod any more."""
        now = await self._fresh.pod(Key(pod.namespace, pod.name))
        return now.node if now is not None and now.uid == pod.uid else ""


def _same_run(one: PodView, other: PodView) -> bool:
    """Both are workers of one gang. Workers that do not share a GPU may come all at once."""
    mine, theirs = one.member, other.member
    return mine is not None and theirs is not None and (mine.job, mine.run) == (theirs.job, theirs.run)
