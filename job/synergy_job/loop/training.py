"""The training loop of a worker: from the checkpoint to the last step, or to the step at which it must leave."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from synergy_job.cache.cache import follow_memory
from synergy_job.checkpoints.checkpoint import CheckpointError
from synergy_job.checkpoints.fence import Fence, FencedError, install
from synergy_job.departure import Departure
from synergy_job.gang.base import Watchdog
from synergy_job.gang.of_worker import gang_of
from synergy_job.lease.client import LeaseClient, Report
from synergy_job.lease.reporter import Reporter
from synergy_job.length import PLANNED, Length
from synergy_job.loop.data import LoaderError, epoch_steps, epochs
from synergy_job.loop.pauses import Pauses
from synergy_job.loop.rate import RateWindow
from synergy_job.loop.rules import EXIT_YIELDED
from synergy_job.loop.script import Script, listening
from synergy_job.loop.sent import SentMeter
from synergy_job.loop.signals import Signals
from synergy_job.loop.termination import write_checkpoint_failure, write_termination_message

if TYPE_CHECKING:
    from synergy_job.environment import Worker
    from synergy_job.loop.data import Loader
    from synergy_job.loop.rules import CheckpointRules
    from synergy_job.loop.tensors import TensorSizes

log = logging.getLogger("synergy_job")

T = TypeVar("T")


class Training(Generic[T]):
    """One worker's part in one run of a job."""

    def __init__(
        self, worker: Worker, loader: Loader[T], rules: CheckpointRules, sizes: TensorSizes | None = None
    ) -> None:
        self._sizes = sizes
        self._worker = worker
        self._loader = loader
        self._rules = rules
        self._departure = Departure()
        self._signals = Signals(self._departure)
        self._watchdog = Watchdog(self._signals.interrupt)
        self._rate = RateWindow()
        self._pauses = Pauses()
        self._length = Length(worker)
        self._script = Script(self._length.finish, self._pauses)
        self._ended_early: str | None = None
        self._unsaved: str | None = None
        self._sent: SentMeter | None = None
        self._fence = self._make_fence()
        self._gang = gang_of(worker, self._departure, self._watchdog, self._length, self._step_seconds)
        self._reporter = self._make_reporter()
        self._step = 0
        self._saved_step = 0
        self._saved_at = 0.0
        self._saved_trained_s: float = worker.trained_seconds
        self._fenced_step = -1

    def batches(self) -> Generator[T, None, None]:
        """The batches that are left to train on. A step counts when its loop body has ended.

        Returns when the job is done and its last checkpoint written. Raises `SystemExit(75)` when this worker must
        leave, or may not write the last checkpoint: the next run goes on from the one before.
        """
        self._signals.install()
        install(self._fence)
        try:
            self._learn_length()
            self._resume()
            if not self._gang.join(self._step):
                self._end("yielded")
                raise SystemExit(EXIT_YIELDED)
            self._pauses.resumed()
            self._length.begin()
            self._saved_at = time.monotonic()
            with self._told_if_it_fails("load"):
                self._check_time()
            self._sent = SentMeter(self._step, self._worker.world_size)
            if self._reporter is not None:
                self._reporter.start()
            with listening(self._script):
                yield from self._train()
            self._save()
            end = self._gang.depart(self._step, saved=self._rules.save is None or self._saved_step == self._step)
            self._leave() if end is None else self._finish(end)
        finally:
            if self._reporter is not None:
                self._reporter.stop()
            self._gang.close()
            self._signals.restore()
            install(None)

    def _train(self) -> Generator[T, None, None]:
        stream = epochs(self._loader, self._step, self._learned)
        self._rate.add(self._step, self._training_time())
        try:
            while not self._length.reached(self._step) and self._gang.proceed(self._step):
                self._signals.interruptible = True
                try:
                    batch = next(stream)
                except StopIteration:  # the last epoch has shown only now how long epochs are
                    return
                if not self._gang.proceed(self._step):  # asked to leave while waiting for data
                    return
                yield batch
                self._signals.interruptible = False
                if self._script.abandoned:
                    return
                self._step += 1
                self._rate.add(self._step, self._training_time())
                self._gang.finished(self._step)
                if self._rules.due(self._step, time.monotonic() - self._saved_at):
                    self._save()
        finally:
            self._signals.interruptible = False
            stream.close()

    def _learn_length(self) -> None:
        steps = epoch_steps(self._loader)
        if steps is not None:
            self._length.learn(steps)
        elif self._worker.epochs is not None and self._worker.world_size > 1:
            raise LoaderError(
                "spec.epochs with several processes needs a loader that has len(): give it one, or set spec.steps"
            )

    def _learned(self, steps: int) -> bool:
        """An epoch of a loader without `len()` is over. True if that was all."""
        self._length.learn(steps)
        return self._length.reached(self._step)

    def _training_time(self) -> float:
        """A clock that stands still in pauses."""
        now = time.monotonic()
        return now - self._pauses.seconds(now)

    def _resume(self) -> None:
        with self._told_if_it_fails("load"):
            self._load()
        if self._step:
            log.warning(
                "%s run %d resumes at step %d of %s",
                self._worker.job,
                self._worker.run,
                self._step,
                self._length,
            )
        if self._rules.save is None:
            log.warning("iterate() was given no save and load: when the job must leave, its progress is lost")

    def _load(self) -> None:
        loaded = self._rules.load() if self._rules.load is not None else None
        step = 0 if loaded is None else loaded
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise CheckpointError(f"load() returned {loaded!r}: it must return the step that save() was given, or None")
        if self._length.steps is not None and step > self._length.steps:
            raise CheckpointError(
                f"load() returned step {step} but the job has {self._length.steps} steps: the checkpoint is another "
                "job's, or spec.steps or spec.epochs was made smaller"
            )
        self._step = self._saved_step = step

    @contextmanager
    def _told_if_it_fails(self, function: str) -> Iterator[None]:
        """Whichever worker's function it is: the run fails of it, and the job's conditions say so."""
        try:
            yield
        except FencedError:
            raise  # no failure of the job: another run has it
        except Exception as error:
            kept = (self._saved_step, self._trained_s_when_saved) if function == "save" else None
            write_checkpoint_failure(self._worker.termination_log, function, error, kept)
            raise

    def _check_time(self) -> None:
        """Raises `CheckpointError` where the job's time is over and nothing of it was kept: that is no success."""
        if self._step == 0 and self._rules.load is not None and self._length.time_is_up:
            raise CheckpointError(
                f"the job has trained for {self._worker.trained_seconds:.0f} s, all that spec.maxRunSeconds gives, and "
                "load() finds no checkpoint: give checkpoint_every_seconds, and more time"
            )

    def _save(self) -> None:
        if self._rules.save is None or self._step in (self._saved_step, self._fenced_step):
            return
        if not self._may_save():
            if self._fence is not None and self._fence.shut:
                self._departure.request()
            return
        if self._rules.every_rank or self._worker.rank == 0:
            self._watchdog.busy = True
            try:
                with self._told_if_it_fails("save"), self._pauses.saving():
                    self._rules.save(self._step)
            except FencedError as error:
                log.warning("%s; this worker leaves", error)
                self._unsaved = str(error)
                self._departure.request()
                self._fenced_step = self._step  # the other ranks would not save it with this one a second time
                return
            finally:
                self._watchdog.busy = False
        self._saved_step, self._saved_at, self._unsaved = self._step, time.monotonic(), None
        self._saved_trained_s = self._length.trained_seconds

    def _may_save(self) -> bool:
        """Whether the checkpoint is written. All ranks write theirs, or none: without one of them, the others would
        wait for it in a collective operation."""
        allowed = self._fence is None or self._fence.may_save
        if not allowed and self._fence is not None:
            self._unsaved = self._fence.shut or "the extender refuses this pod's lease"
            log.warning("step %d is not saved: %s", self._step, self._unsaved)
        return self._gang.all_save(self._step, allowed) if self._rules.every_rank else allowed

    def _leave(self) -> None:
        log.warning("%s run %d leaves after step %d", self._worker.job, self._worker.run, self._step)
        self._end("yielded")
        raise SystemExit(EXIT_YIELDED)

    def _finish(self, end: str) -> None:
        if end != PLANNED:
            self._ended_early = end
            log.warning("%s ends early after step %d: %s", self._worker.job, self._step, end)
        self._end("finished")
        if self._reporter is not None:
            self._reporter.finish()

    def _end(self, outcome: str) -> None:
        # what is in no checkpoint is not done: the next run starts without it
        left = outcome == "yielded"
        trained_s = self._trained_s_when_saved if left else self._length.trained_seconds
        if self._worker.local_rank == 0:
            write_termination_message(
                self._worker.termination_log,
                outcome,
                self._saved_step if left else self._step,
                self._saved_step,
                save_seconds=self._pauses.save_seconds,
                trained_seconds=round(trained_s, 3),
                ended_early=self._ended_early,
                unsaved=self._unsaved if left else None,
            )

    @property
    def _trained_s_when_saved(self) -> float:
        """Seconds of training that the newest checkpoint has; all, where the job keeps none."""
        return self._length.trained_seconds if self._rules.save is None else self._saved_trained_s

    def _make_reporter(self) -> Reporter | None:
        if self._worker.lease is None or self._worker.rank != 0:
            return None
        return Reporter(LeaseClient(self._worker.lease), self._departure, self._progress, follow_memory, self._fence)

    def _make_fence(self) -> Fence | None:
        """Rank 0 decides when a gang saves, and it alone speaks with the extender."""
        if self._worker.lease is None or self._worker.rank != 0:
            return None
        return Fence(self._worker.fence_s)

    def _progress(self, done: bool) -> Report:
        rate = self._rate.steps_per_second(self._training_time())
        sizes = self._sizes
        return Report(
            self._step,
            self._saved_step,
            round(rate, 4),
            self._gang.gpu_uuids,
            done,
            largest_tensor_bytes=None if sizes is None else sizes.largest_bytes,
            model_bytes=None if sizes is None else sizes.model_bytes,
            save_seconds=self._pauses.save_seconds,
            resume_seconds=self._pauses.resume_seconds,
            epoch_steps=self._length.epoch_steps,
            trained_seconds=round(self._length.trained_seconds, 3),
            paused_seconds=round(self._worker.paused_seconds + self._pauses.seconds(time.monotonic()), 3),
            metrics=self._script.metrics,
            ended_early=self._ended_early,
            **self._sent_by_step(),
        )

    def _sent_by_step(self) -> dict[str, int]:
        """What is seen of a model that the job does not tell."""
        if self._sizes is not None or self._sent is None:
            return {}
        sent = self._sent.per_step(self._step, self._gang.peers)
        return {} if sent is None else {"sent_bytes_per_step": sent, "world_size": self._worker.world_size}

    def _step_seconds(self) -> float:
        rate = self._rate.steps_per_second(self._training_time())
        return 1.0 / rate if rate > 0 else 0.0
