"""What the API server says now: for where the watch, which may be a moment behind, would make us refuse."""

import re

from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.views import JobView, Key, PodView, read_pod
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import PODS, TRAINING_JOBS

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class FreshLook:
    """Reads past the watch. Methods raise ApiError, aiohttp.ClientError or TimeoutError."""

    def __init__(self, client: KubeClient, cache: ClusterCache) -> None:
        self._client = client
        self._cache = cache

    async def job(self, key: Key) -> JobView | None:
        """The job, which the cache knows from now on too; None if there is none."""
        if not _possible(key):
            return None
        try:
            self._cache.observe(await self._client.get(TRAINING_JOBS, key.name, key.namespace))
        except NotFound:
            return None
        return self._cache.jobs.get(key)

    async def pod(self, name: Key) -> PodView | None:
        """The pod; None if there is none."""
        if not _possible(name):
            return None
        try:
            pod = read_pod(await self._client.get(PODS, name.name, name.namespace))
        except NotFound:
            return None
        return self._cache.pods.counted(pod)


def _possible(key: Key) -> bool:
    """Whether anything can have this name, which comes from outside and becomes part of a path."""
    return bool(_NAME.fullmatch(key.name) and _NAMESPACE.fullmatch(key.namespace))
