"""Bytes that the extender's views of objects take, over the objects' bytes on the wire."""

import gc
import json
import tracemalloc
from collections.abc import Callable

from performance.figures.extender import running_jobs, their_pods
from synergy_extender.cluster.views import read_job, read_pod

Json = dict[str, object]


def jobs(jobs: int) -> float:
    """Of running jobs."""
    return _kept(running_jobs(jobs), read_job)


def pods(pods: int) -> float:
    """Of their workers."""
    return _kept(their_pods(pods), read_pod)


def _kept(items: list[Json], read: Callable[[Json], object]) -> float:
    """Each object is read from its JSON as it comes from the API server, and only its view is kept.

    All are read once before: what reading fills for the whole process, such as tables of interned names, is not theirs.
    """
    bodies = [json.dumps(item) for item in items]
    first = [read(json.loads(body)) for body in bodies]
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [read(json.loads(body)) for body in bodies]
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == len(first) == len(items)
    return (after - before) / sum(len(body) for body in bodies)
