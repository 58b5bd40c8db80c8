"""Jobs that a deleted namespace has left behind, as happens when one is created while its namespace goes."""

import logging
from collections.abc import Mapping

from synergy_extender.cluster.pod_index import PodIndex
from synergy_extender.cluster.views import JobView, Key
from synergy_kube import Reflector

_LOG = logging.getLogger(__name__)


class Orphans:
    """Tells which jobs are orphans, from the namespaces that there are.

    The API server refuses each write of an orphan, so its status can never say that it gives its place back. Its pods
    go with the namespace. As long as one of them is on a node, the job is none.
    """

    def __init__(self, namespaces: Reflector) -> None:
        self._namespaces = namespaces
        self._known: frozenset[Key] = frozenset()
        self._told: frozenset[Key] = frozenset()

    def without(self, jobs: Mapping[Key, JobView], pods: PodIndex) -> dict[Key, JobView]:
        """The jobs without the orphans, each of which the log names once. All of them while nothing is known of
        namespaces: a user whose cluster is read once may not list them."""
        orphans = self._of(jobs, pods) if self._namespaces.synced.is_set() else frozenset[Key]()
        # of a new namespace the watch may tell a moment later than that of jobs
        lasting = orphans & self._known
        for key in lasting - self._told:
            _LOG.warning("TrainingJob %s is left out of plans: there is no namespace %s", key, key.namespace)
        self._known, self._told = orphans, lasting
        return {key: job for key, job in jobs.items() if key not in orphans} if orphans else dict(jobs)

    def _of(self, jobs: Mapping[Key, JobView], pods: PodIndex) -> frozenset[Key]:
        gone = {key.namespace for key in jobs}.difference(name for _, name in self._namespaces.items)
        if not gone:
            return frozenset()
        inside = (key for key in jobs if key.namespace in gone)
        return frozenset(key for key in inside if not any(pod.holds for pod in pods.of_job(key)))
