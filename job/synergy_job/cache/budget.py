"""How much memory the caches of a pod may take: what the operator calculated, changed by later resizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from synergy_job.cgroup import Cgroup
from synergy_job.environment import read_integer


class PodMemory:
    """The pod's memory as its caches see it.

    The operator writes what the caches may take of the pod's memory (`SYNERGY_CACHE_BYTES`), how large that memory was
    then (`SYNERGY_MEMORY_BYTES`), and the container's part of it (`SYNERGY_CONTAINER_BYTES`); the rest is the job's own
    working set, which stays as it is when the pod's memory changes in place, even before this process began. Outside a
    cluster all are 0.
    """

    def __init__(self, environ: Mapping[str, str], limit_bytes: Callable[[], int | None] | None = None) -> None:
        """`limit_bytes` reads the container's memory limit, by default from its cgroup. Raises `ConfigError` for a
        variable that is no number of bytes."""
        self._cache_bytes = read_integer(environ, "SYNERGY_CACHE_BYTES", 0)
        self._pod_bytes = read_integer(environ, "SYNERGY_MEMORY_BYTES", 0)
        self._limit_bytes = limit_bytes or Cgroup.of_this_process().limit_bytes
        self._reckoned_bytes = read_integer(environ, "SYNERGY_CONTAINER_BYTES", 0) or self._limit_bytes()
        self._told_bytes: int | None = None

    def budget(self, told_bytes: int | None = None) -> int:
        """Bytes for the caches now. `told_bytes` is the pod's memory in the plan, where somebody has said it; it counts
        until somebody says otherwise.

        Less memory counts as soon as it is planned, since the kernel takes it away only once it is free; more counts
        once the container's limit has really grown.
        """
        limit = self._limit_bytes()
        grown = limit - self._reckoned_bytes if limit is not None and self._reckoned_bytes is not None else 0
        change = grown
        if told_bytes is not None:
            self._told_bytes = told_bytes
        if self._told_bytes is not None and self._pod_bytes:
            change = self._told_bytes - self._pod_bytes
            if change > 0:
                change = max(0, min(change, grown))
        return max(0, self._cache_bytes + change)
