"""Bytes that the extender's views of objects take, over the objects' bytes on the wire. They are the same each time.

Each is measured in a process of its own: what a class's objects take depends on what was done with others of them.
"""

import gc
import json
import multiprocessing
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from performance.figures.extender import running_jobs, their_pods
from synergy_extender.cluster.views import read_job, read_pod

Json = dict[str, object]


def jobs(jobs: int) -> float:
    """Of running jobs."""
    return _apart(_jobs, jobs)


def pods(pods: int) -> float:
    """Of their workers."""
    return _apart(_pods, pods)


def _apart(measured: Callable[[int], float], count: int) -> float:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(measured, count).result()


def _jobs(count: int) -> float:
    return _kept(running_jobs(count), read_job)


def _pods(count: int) -> float:
    return _kept(their_pods(count), read_pod)


def _kept(items: list[Json], read: Callable[[Json], object]) -> float:
    """Each object is read from its JSON as it comes from the API server, and only its view is kept."""
    bodies = [json.dumps(item) for item in items]
    read(json.loads(bodies[0]))
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [read(json.loads(body)) for body in bodies]
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == len(items)
    return (after - before) / sum(len(body) for body in bodies)
