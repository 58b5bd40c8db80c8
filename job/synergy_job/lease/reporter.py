"""The background thread that renews the lease and reports progress."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from synergy_job.checkpoints.fence import Fence, now
from synergy_job.lease.client import LeaseError

if TYPE_CHECKING:
    from synergy_job.departure import Departure
    from synergy_job.lease.client import LeaseAnswer, LeaseClient, Report

log = logging.getLogger("synergy_job")

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 10.0
FINAL_TRIES = 4
FINAL_PATIENCE_S = 10.0


def retry_delay(failures: int, fraction: float) -> float:
    """Seconds before the next try after `failures` (>= 1) in a row: doubles up to 10 s, of which `fraction` (0 to 1)
    moves the last half: the workers of a cluster do not all come back at once."""
    whole = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(failures - 1, 10))
    return whole * (0.5 + 0.5 * fraction)


class Reporter:
    """Reports as often as the extender asks, and passes a `yield` on to the departure.

    Training never waits for it: while the extender cannot be reached it tries again and the job trains on, until the
    fence asks it to leave.
    """

    def __init__(
        self,
        client: LeaseClient,
        departure: Departure,
        progress: Callable[[bool], Report],
        on_memory: Callable[[int], None] | None = None,
        fence: Fence | None = None,
    ) -> None:
        """`on_memory` gets the pod's memory in the plan, with each answer that has it; `fence` of each answer."""
        self._fence = fence or Fence()
        self._on_memory = on_memory
        self._client = client
        self._departure = departure
        self._progress = progress
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures = 0

    def start(self) -> None:
        """Report for the first time, and go on in a daemon thread."""
        self._thread = threading.Thread(target=self._run, name="synergy-lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No report begins after this; one that is on its way may still end."""
        self._stopped.set()

    def finish(self) -> bool:
        """Say that the job is done. Tries a few times, for some 10 s at most; whether it got through."""
        self.stop()
        deadline = time.monotonic() + FINAL_PATIENCE_S
        if self._thread is not None:
            self._thread.join(FINAL_PATIENCE_S / 2)
        for attempt in range(1, FINAL_TRIES + 1):
            try:
                self._client.send(self._progress(True))
            except LeaseError as error:
                log.warning("the final report failed: %s", error)
                pause = retry_delay(attempt, random.random())  # noqa: S311
                if error.refused or attempt == FINAL_TRIES or time.monotonic() + pause > deadline:
                    break
                time.sleep(pause)
            else:
                return True
        return False

    def _run(self) -> None:
        delay = 0.0
        while not self._stopped.wait(delay):
            verdict = self._report()
            if self._fence.shut or (verdict is None and self._fence.should_leave):
                log.warning("%s: this worker leaves", self._fence.shut or "the extender has not answered for too long")
                self._departure.request()
                return
            if verdict is None:
                delay = min(retry_delay(self._failures, random.random()), self._fence.leave_in_s)  # noqa: S311
            elif verdict.leave:
                self._departure.request(verdict.yield_in_s)
                return
            else:
                delay = verdict.next_report_s

    def _report(self) -> LeaseAnswer | None:
        asked_at = now()
        try:
            verdict = self._client.send(self._progress(False))
        except LeaseError as error:
            self._failures += 1
            if error.refused:
                self._fence.refused(str(error))
            if self._failures == 1:
                log.warning("lease not renewed, training goes on: %s", error)
            return None
        if verdict.leave:
            self._fence.told_to_leave()
        else:
            self._fence.heard(asked_at)
        if self._failures:
            log.warning("lease reports get through again after %d failures", self._failures)
        self._failures = 0
        self._follow_memory(verdict)
        return verdict

    def _follow_memory(self, verdict: LeaseAnswer) -> None:
        """A cache that cannot follow must not end the thread, without which the worker loses its lease."""
        if verdict.memory_bytes is None or self._on_memory is None:
            return
        try:
            self._on_memory(verdict.memory_bytes)
        except OSError as error:
            log.warning("the cache does not follow the plan's memory: %s", error)
