"""TrainingJobs of a real API server live while their recorder is killed again and again: nothing is lost or doubled."""

import asyncio
import os
import random
import signal
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import synergy_devcluster
from support.dashboard.histories import audited, check_times, told_of
from support.extender.world import without_the_product
from support.operator.job_life import GPUS, Audit, Life
from support.waiting import eventually
from synergy_dashboard.store.store import Store
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import TRAINING_JOBS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

JOBS = {"sqlite": 60, "postgresql": 80}
WRITES = 15
WRITERS = 4
Starting = Callable[[], Awaitable[asyncio.subprocess.Process]]


class Watcher:
    """What the API server told of each job, in order, by a watch that is never cut."""

    def __init__(self) -> None:
        self.audits: dict[str, Audit] = defaultdict(Audit)
        self.versions: dict[str, str] = {}
        self.gone: set[str] = set()
        self.uids: dict[str, str] = {}

    def see(self, change: Change) -> None:
        """Take a change."""
        name = change.key[1]
        if change.new is None:
            self.gone.add(name)
            self.versions.pop(name)
            self.audits[name].gone()
            return
        self.uids[name] = change.new["metadata"]["uid"]
        self.versions[name] = change.new["metadata"]["resourceVersion"]
        self.audits[name].see(change.new.get("status") or {})

    @asynccontextmanager
    async def following(self, kube: KubeClient, namespace: str) -> AsyncIterator["Watcher"]:
        """Watch meanwhile."""
        reflector = Reflector(kube, TRAINING_JOBS, namespace=namespace, on_change=self.see)
        task = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def live(kube: KubeClient, namespace: str, numbers: list[int]) -> None:
    """Create these jobs and write all their statuses, those of all jobs by turns; a third is deleted at last."""
    lives = {}
    for number in numbers:
        life = Life(f"job-{number:03}", random.Random(number), now=time.time(), namespace=namespace)
        template = {"spec": {"containers": [{"name": "train", "image": "x", "command": ["x"]}]}}
        spec = {"gpus": GPUS, "steps": 100, "gpuTypes": ["V100", "T4"], "template": template}
        await kube.create(TRAINING_JOBS, {"metadata": {"name": life.name}, "spec": spec}, namespace)
        lives[life.name] = (life, life.statuses(WRITES))
    for _ in range(WRITES):
        for name, (life, statuses) in lives.items():
            life.now = time.time()
            body = {"status": next(statuses)}
            await kube.apply(TRAINING_JOBS, name, body, namespace, manager="life", subresource="status")
    for name in list(lives)[::3]:
        await kube.delete(TRAINING_JOBS, name, namespace)


async def start(url: str, kubeconfig: Path, log: Path) -> asyncio.subprocess.Process:
    """The recorder as a process."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with log.open("ab") as out:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "support.dashboard.recording", url, str(kubeconfig), env=env, stdout=out, stderr=out
        )


async def killed_again_and_again(start_one: Starting, store: Store, work: "asyncio.Future[Any]") -> int:
    """Kill the recorder at random moments until the work is done: in turn soon after its start, at whatever it is, and
    soon after it has written. Returns how often."""
    rng, kills = random.Random(7), 0
    while not work.done():
        before = await asyncio.to_thread(store.remembered)
        process = await start_one()

        async def has_written(version: str = before.version) -> bool:
            return work.done() or (await asyncio.to_thread(store.remembered)).version != version

        if kills % 2:
            await asyncio.wait([work], timeout=rng.uniform(0.5, 4.0))
        else:
            await eventually(has_written, seconds=60, what="the recorder to write")
            await asyncio.wait([work], timeout=rng.uniform(0.0, 1.5))
        process.send_signal(signal.SIGKILL)
        await process.wait()
        kills += 1
    return kills


async def check(kube: KubeClient, kubeconfig: Path, namespace: str, url: str, folder: Path) -> dict[str, int]:
    """The whole test; returns what it counted."""
    log = folder / "recorder.log"
    store = Store(url)
    store.migrate()
    async with Watcher().following(kube, namespace) as watcher:
        first = await start(url, kubeconfig, log)

        async def begun() -> bool:
            return bool((await asyncio.to_thread(store.remembered)).version)

        await eventually(begun, seconds=60, what=f"the recorder to begin, see {log}")
        first.send_signal(signal.SIGKILL)
        await first.wait()
        numbers = range(int(os.environ.get("RECORDED_JOBS", JOBS[url.partition(":")[0]])))
        shares = [list(numbers)[writer::WRITERS] for writer in range(WRITERS)]
        work = asyncio.ensure_future(asyncio.gather(*(live(kube, namespace, share) for share in shares)))
        kills = await killed_again_and_again(partial(start, url, kubeconfig, log), store, work)
        await work
        last = await start(url, kubeconfig, log)

        async def caught_up() -> bool:
            stored = await asyncio.to_thread(store.remembered)
            found = {
                name: item["metadata"]["resourceVersion"]
                for (where, name), item in stored.objects.items()
                if where == namespace
            }
            return found == watcher.versions

        try:
            await eventually(caught_up, seconds=60, what=f"the recorder to catch up, see {log}", every=0.5)
        finally:
            last.send_signal(signal.SIGKILL)
            await last.wait()
    assert len(watcher.uids) == len(numbers)
    runs = compare(store, watcher)
    store.close()
    return {"kills": kills, "jobs": len(watcher.uids), "deleted": len(watcher.gone), "runs": runs}


def compare(store: Store, watcher: Watcher) -> int:
    """All that the watch saw is in the store, once. Returns how many runs it saw."""
    for name, uid in watcher.uids.items():
        assert told_of(store, uid) == audited(watcher.audits[name]), name
        check_times(store, uid)
        assert all(run.seen for run in store.runs_of(uid)), name
        assert not (name in watcher.gone and any(wait.until_s is None for wait in store.waits_of(uid))), name
    deleted = {job.name for job in store.jobs(0.0, 1e12, None, 1_000_000) if job.deleted_s is not None}
    assert deleted >= watcher.gone
    return sum(len(audit.runs) for audit in watcher.audits.values())


@pytest.fixture
async def place(kube: KubeClient, custom_resources: None, namespace: str) -> AsyncIterator[str]:
    """A namespace in which nobody but the test writes statuses."""
    async with without_the_product(kube):
        yield namespace


async def test_a_killed_recorder_leaves_no_hole_and_no_double(
    kube: KubeClient, devcluster: synergy_devcluster.Cluster, place: str, url: str, tmp_path: Path
) -> None:
    counted = await check(kube, devcluster.kubeconfig, place, url, tmp_path)
    assert counted["kills"] >= 2  # beside the first, before any job came; on a slow machine many more
    assert counted["runs"] >= counted["jobs"]
