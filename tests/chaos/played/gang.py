"""One run of one job as its containers live it: steps are counted, checkpoints are numbers, lease reports are real."""

import asyncio
import contextlib
import json
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.observer.book import BY_ITSELF, CLOCK, CLOCK_SECONDS, SLOW_SAVE, Book, Run
from chaos.played.hearing import Answers, HeardDeparture, ReachedClient
from chaos.played.kubelet import Kubelet
from synergy_api.names import EXIT_YIELDED
from synergy_job.checkpoints.fence import Fence
from synergy_job.environment import LeaseAccess
from synergy_job.lease.client import Report
from synergy_job.lease.reporter import Reporter

RATE = 10.0
"""Steps per second."""
CHECKPOINT_STEPS = 50
_CUT_OFF_RATE, _CUT_OFF_STEPS = 0.5, 1
"""The same where the node is cut off: jobs are short, and a worker that nothing held back would have finished long
before the next run may start. So it would still train and save then."""
_TICK_SECONDS = 0.1
_LONGEST_TICK_SECONDS = 0.3
"""A machine that stalls trains no further meanwhile."""
_EARLY_SECONDS = 1.0
"""How much before its lease's end a worker may leave: status times are whole seconds at worst."""
_REPORT_SECONDS = 2.5
"""How often a worker reports at the least: rounds are of 10 s, and each has four reports."""
_SLOW_SAVES = 2
_SURE_SECONDS = 25.0
"""A checkpoint of which nobody knows how long it takes is waited for at least so long after the lease: 30 s are
promised, of which some go by until the worker has heard that it has to leave."""

Object = Mapping[str, Any]
_LOG = logging.getLogger("chaos")


class Training:
    """What outlives the runs of one job: its volume (the newest checkpoint), and a count of what was really done."""

    def __init__(self, job: str, steps: int, *, library: bool, book: Book) -> None:
        self.job = job
        self.steps = steps
        self.library = library
        self.checkpoint = 0
        self.reached = 0
        self.reached_in = 0
        self.resumed = 0
        self.lost = 0
        self.doubled = 0
        self.live: dict[int, int] = {}
        """The runs that train now, with their step."""
        self.newest = 0
        """The newest run that has begun to train."""
        self._slow: list[float] = []
        self._book = book

    def resume(self, run: int) -> int:
        """A run begins to train: from which step."""
        if self.checkpoint < self.reached and not self._book.why_hurt((self.job, self.reached_in)):
            self.lost += self.reached - self.checkpoint
            self._book.breaks(
                f"{self.job} run {run} repeats steps {self.checkpoint} to {self.reached}: run {self.reached_in} was "
                "ended without a chance to save them"
            )
        if self.live:
            self._book.breaks(f"{self.job} run {run} begins to train while run {max(self.live)} trains")
        self.newest = max(self.newest, run)
        self.live[run] = self.resumed = self.checkpoint
        return self.checkpoint

    def advance(self, run: int, step: int) -> None:
        """The run has come to this step."""
        if len(self.live) > 1 and run == max(self.live):
            self.doubled += step - self.live[run]
        self.live[run] = step
        self.reached, self.reached_in = step, run

    def slows(self, seconds: float) -> None:
        """The job's storage is slow: its next checkpoints take so long."""
        self._slow = [seconds] * _SLOW_SAVES

    def begin_save(self) -> float:
        """A checkpoint begins: how many seconds it takes."""
        return self._slow.pop() if self._slow else 0.0

    def save(self, run: int) -> None:
        """The run has written a checkpoint."""
        if run < self.newest:
            self._book.breaks(f"{self.job} run {run} writes a checkpoint after run {self.newest} has begun to train")
            return
        self.checkpoint = self.live[run]


@dataclass(frozen=True)
class Around:
    """What all gangs share. `folder` is for tokens."""

    book: Book
    kubelet: Kubelet
    folder: Path
    chance: random.Random


class Gang:
    """The workers of one run. Its methods say what happens to them from outside."""

    def __init__(self, run: Run, size: int, training: Training, around: Around) -> None:
        self.run = run
        self.size = size
        self.pods: dict[int, Object] = {}
        self._training = training
        self._around = around
        self._book = around.book
        self._kubelet = around.kubelet
        self._departure = HeardDeparture()
        self._answers = Answers()
        self._task: asyncio.Task[None] | None = None
        self._broken = ""
        self._fence: Fence | None = None
        self._client: ReachedClient | None = None
        self._save_seconds: float | None = None
        self.told = False
        """A worker got SIGTERM."""
        self._unknown = False
        self.saving = False
        """It writes a checkpoint that takes a while."""
        self.reachable = asyncio.Event()
        """Reports get through to the extender from its node, and what its kubelet says to the API server."""
        self.reachable.set()
        self._lost = asyncio.Event()

    @property
    def complete(self) -> bool:
        """All its workers run."""
        return len(self.pods) == self.size and all(_running(pod) for pod in self.pods.values())

    @property
    def trains(self) -> bool:
        """Its workers train."""
        return self.run[1] in self._training.live

    @property
    def lease_end(self) -> float | None:
        """When the lease endpoint wants it to leave, in Unix seconds."""
        return self._departure.told_by_lease

    def begin(self) -> None:
        """Train, once all workers run."""
        if self._task is None and not self._broken and self.complete:
            self._task = asyncio.create_task(self._live())
            self._task.add_done_callback(self._book.task_ended)

    def terminate(self) -> None:
        """A worker got SIGTERM: the gang saves and leaves together."""
        self.told = True
        if self._task is None:
            self._broken = self._broken or "SIGTERM before training"
        self._departure.terminate()

    def loses(self, how: str) -> None:
        """A worker is gone without a word; the others wait for it in vain."""
        self._broken = self._broken or how
        self._lost.set()

    def cut_short(self, rank: int) -> None:
        """A worker was killed while it wrote its checkpoint. That may be where a fault or a user ended the run, or
        where the checkpoint takes longer than anybody could know, or where no answer got through to the worker after
        the end of its lease, so that it began to save late; else steps are lost that should not be."""
        told_late = "it could not hear in time that it had to leave" if self._told_late() else ""
        if why := self._book.why_ended(self.run) or (SLOW_SAVE if self._unknown else "") or told_late:
            self._book.hurt(self.run, why)
        else:
            _LOG.warning("%s run %d is killed while it saves: %s", *self.run, self._last_words())
        self.loses(f"worker {rank} was killed while it wrote its checkpoint")

    def _told_late(self) -> bool:
        """Whether it heard of its leaving only after its lease, because for longer than it is between two reports none
        was answered. Who is told to train on after the lease's end is told wrong."""
        end, told, heard = self._book.leases.get(self.run), self._departure.told_at, self._answers.trains_on_at
        return end is not None and heard <= end and (told is None or told > end + _REPORT_SECONDS)

    def _last_words(self) -> str:
        saves, end = self._book.saves.get(self.run[0], 0.0), self._book.leases.get(self.run)
        told, heard = self._departure.told_at, self._answers.trains_on_at
        return f"known to save for {saves} s, lease until {end}, told at {told}, last told to train on at {heard}"

    @property
    def can_live_cut_off(self) -> bool:
        """Whether it trains with the library on one node alone: what others do there nobody could fence."""
        nodes = {pod["spec"]["nodeName"] for pod in self.pods.values()}
        return self.trains and self._training.library and self.complete and len(nodes) == 1

    async def stop(self) -> None:
        """The end of the harness."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._client is not None:
            self._client.close()

    async def _live(self) -> None:
        reporter = await self._reporter() if self._training.library else None
        if self._broken or (reporter is None and self._training.library):
            return
        if reporter is not None:
            reporter.start()
        number = self.run[1]
        try:
            self._training.resume(number)
            ended = await self._train(number)
            if reporter is not None:
                reporter.stop()
                if ended == "finished":
                    await asyncio.to_thread(reporter.finish)
        finally:
            self._training.live.pop(number, None)
            if reporter is not None:
                reporter.stop()
        await self._exit(ended)

    async def _train(self, number: int) -> str:
        training, total = self._training, self._training.steps
        exact = float(training.live[number])
        at = time.monotonic()
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            if self._broken:
                return "broken"
            now = time.monotonic()
            exact += min(now - at, _LONGEST_TICK_SECONDS) * (RATE if self.reachable.is_set() else _CUT_OFF_RATE)
            at = now
            training.advance(number, min(total, int(exact)))
            if training.live[number] >= total:
                return await self._save(number, "finished")
            if self._departure.due():
                self._check_lease()
                return await self._save(number, "yielded")
            every = CHECKPOINT_STEPS if self.reachable.is_set() else _CUT_OFF_STEPS
            if training.live[number] - training.checkpoint >= every:
                await self._save(number, "")
                at = time.monotonic()

    async def _save(self, number: int, then: str) -> str:
        """Write a checkpoint, for as long as it takes; `then`, or how it went wrong."""
        begun, seconds = time.monotonic(), self._training.begin_save()
        self._unknown = seconds > max(_SURE_SECONDS, self._book.saves.get(self.run[0], 0.0))
        self.saving = seconds > 0
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._lost.wait(), seconds)
        self.saving = False
        if self._broken:
            return "broken"
        if self._fence is not None and not self._fence.may_save:
            self._book.hurt(self.run, "its fence was shut before its checkpoint was written")
            if self._fence.shut:
                self._departure.request()
            return "yielded" if then else ""  # the last steps are in no checkpoint: the job has not finished
        self._training.save(number)
        self._save_seconds = round(time.monotonic() - begun, 3)
        return then

    def _check_lease(self) -> None:
        """Nobody of ours may send a worker away before its lease ends."""
        told = self._departure.told_by_lease
        until = self._book.leases.get(self.run)
        off = self._book.failed_lately(CLOCK, CLOCK_SECONDS)
        if self._fence is not None and self._fence.should_leave:
            self._book.ended(self.run, "it has heard nobody for too long")
        if told is None or until is None or off or self._book.why_ended(self.run):
            return
        early = self._book.saves.get(self.run[0], 0.0)  # who saves for long is asked so much earlier
        if told < until - early - _EARLY_SECONDS:
            self._book.breaks(
                f"{self.run[0]} run {self.run[1]} was told to leave {until - told:.1f} s before its lease ends"
            )

    async def _exit(self, ended: str) -> None:
        """The containers end: all of them alike, or, where one was lost, the others some seconds later."""
        if ended != "broken":
            self._book.ended(self.run, f"{BY_ITSELF}{ended}")
        message, code = "", 0
        if ended == "broken":
            await asyncio.sleep(self._around.chance.uniform(1.0, 6.0))
            code = 1
        elif self._training.library:
            step = self._training.checkpoint
            known = {} if self._save_seconds is None else {"save_seconds": self._save_seconds}
            message = json.dumps({"outcome": ended, "step": step, "checkpoint_step": step} | known)
            code = EXIT_YIELDED if ended == "yielded" else 0
        elif ended == "yielded":
            code = 143
        await self.reachable.wait()
        pods = [pod for pod in self.pods.values() if self._can_end(pod)]
        if ended == "broken" and pods:
            self._book.ended(self.run, self._broken)
        await asyncio.gather(*(self._kubelet.end(pod, code, message=message) for pod in pods))

    def _can_end(self, pod: Object) -> bool:
        return not self._kubelet.has_ended(pod) and not self._book.failed_now(pod["spec"]["nodeName"]) and _running(pod)

    async def _reporter(self) -> Reporter | None:
        pod = self.pods[0]
        token = await self._kubelet.token(pod)
        if token is None:
            return None
        file = self._around.folder / pod["metadata"]["uid"]
        file.write_text(token)
        env = environment(pod)
        access = LeaseAccess(env["SYNERGY_EXTENDER_URL"], str(file), env["SYNERGY_CA_CERT"])
        self._fence = Fence(float(env["SYNERGY_FENCE_SECONDS"]))
        self._client = ReachedClient(access, self.reachable.is_set, self._answers)
        return Reporter(self._client, self._departure, self._progress(), fence=self._fence)

    def _progress(self) -> Callable[[bool], Report]:
        training, number = self._training, self.run[1]

        def progress(done: bool) -> Report:
            step = training.live.get(number, training.checkpoint)
            return Report(step, training.checkpoint, RATE, (), done, save_seconds=self._save_seconds)

        return progress


def environment(pod: Object) -> dict[str, str]:
    """The environment of the pod's first container."""
    return {item["name"]: item.get("value", "") for item in pod["spec"]["containers"][0].get("env") or []}


def _running(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running"
