"""A job over time: each of its states until it has ended, and what its workers print."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import aiohttp

from kube_synergy.live.cluster import Cluster, Object
from synergy_api.cluster.job_of_pod import job_uid
from synergy_api.names import LABEL_JOB, LABEL_RANK, LABEL_ROLE, LABEL_RUN, ROLE_WORKER
from synergy_kube import ApiError
from synergy_kube.resources import PODS
from synergy_view.seen import SeenJob

LEAST_POLL_S, MOST_POLL_S = 1.0, 15.0
_PART = 20.0
"""The pause between two looks is this part of the job's time in its phase: its end is seen so late at most."""
PATIENCE_S = 300.0
"""How long an API server may be away while a job is followed: it is upgraded now and then."""


async def states(cluster: Cluster, name: str, uid: str) -> AsyncIterator[SeenJob]:
    """The job, looked at every second at first, and every 15 s once it has been in a phase for five minutes; the last
    state is the one in which it has ended.

    Raises NotFound when the job is deleted, also where a later job has its name by then. An API server that does not
    answer is asked again for five minutes.
    """
    answered = changed = time.monotonic()
    phase = None
    while True:
        try:
            job = await cluster.job(name, uid)
        except (ApiError, aiohttp.ClientError, TimeoutError) as error:
            if not is_outage(error) or time.monotonic() - answered > PATIENCE_S:
                raise
        else:
            answered = time.monotonic()
            if job.phase != phase:
                phase, changed = job.phase, answered
            yield job
            if job.finished:
                return
        await asyncio.sleep(poll_s(time.monotonic() - changed))


def poll_s(in_phase_s: float) -> float:
    """Seconds until the next look at a job that has been in its phase for so long."""
    return min(max(LEAST_POLL_S, in_phase_s / _PART), MOST_POLL_S)


def is_outage(error: Exception) -> bool:
    """Whether the same request may succeed later: the API server does not answer, or is overloaded."""
    return not isinstance(error, ApiError) or error.code == 429 or error.code >= 500


@dataclass(frozen=True, slots=True)
class WorkerPod:
    """One worker of one run."""

    run: int
    rank: int
    name: str
    container: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a worker. `problem` says that its log cannot be read; then `text` says why."""

    run: int
    rank: int
    text: str
    problem: bool = False


async def worker_pods(cluster: Cluster, job: str, uid: str, rank: int | None = None) -> list[WorkerPod]:
    """The workers of all runs whose pods still exist, oldest run first, by rank. Pods of an earlier job of the name,
    which the garbage collector has not deleted yet, are left out."""
    selector = f"{LABEL_JOB}={job},{LABEL_ROLE}={ROLE_WORKER}"
    pods = await cluster.items(PODS, cluster.own_namespace, label_selector=selector) or []
    found = (_worker(pod) for pod in pods if job_uid(pod) in ("", uid))
    wanted = [one for one in found if rank is None or one.rank == rank]
    return sorted(wanted, key=lambda one: (one.run, one.rank))


def _worker(pod: Object) -> WorkerPod:
    labels = pod["metadata"]["labels"]
    container = pod["spec"]["containers"][0]["name"]
    return WorkerPod(int(labels.get(LABEL_RUN, 0)), int(labels.get(LABEL_RANK, 0)), pod["metadata"]["name"], container)


async def log_lines(
    cluster: Cluster, pods: Sequence[WorkerPod], *, follow: bool = False, tail: int | None = None
) -> AsyncIterator[LogLine]:
    """What these workers print: of older runs one worker after the other, of the newest, with `follow`, all at once
    until they end. `tail` is the number of last lines of each worker."""
    newest = max((pod.run for pod in pods), default=0)
    live = [pod for pod in pods if follow and pod.run == newest]
    for pod in pods:
        if pod not in live:
            async for line in _lines(cluster, pod, follow=False, tail=tail):
                yield line
    if not live:
        return
    arrived: asyncio.Queue[LogLine | None] = asyncio.Queue()

    async def pump(pod: WorkerPod) -> None:
        try:
            async for line in _lines(cluster, pod, follow=True, tail=tail):
                arrived.put_nowait(line)
        finally:
            arrived.put_nowait(None)

    pumps = [asyncio.create_task(pump(pod)) for pod in live]
    try:
        left = len(pumps)
        while left:
            got = await arrived.get()
            if got is None:
                left -= 1
            else:
                yield got
        await asyncio.gather(*pumps)
    finally:
        for one in pumps:
            one.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _lines(cluster: Cluster, pod: WorkerPod, *, follow: bool, tail: int | None) -> AsyncIterator[LogLine]:
    try:
        async for line in cluster.client.log_lines(
            pod.name, cluster.own_namespace, container=pod.container, follow=follow, tail=tail
        ):
            yield LogLine(pod.run, pod.rank, line.decode(errors="replace"))
    except ApiError as error:
        yield LogLine(pod.run, pod.rank, f"{pod.name}: {error.message}", problem=True)
