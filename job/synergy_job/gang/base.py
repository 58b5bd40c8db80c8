"""How the processes of one job stay together: who may begin a step, and after which step all leave.

Rank 0 leads. Every process says which steps it has done; the leader grants steps, never more than `AHEAD` beyond the
slowest process. When the gang must leave, the leader stops granting and names the last granted step: no process can
have passed it and every process can reach it. So all leave after the same step, whatever their pace. A process that
trains in step with the others anyway (an all-reduce each step) finds the next step granted already and never waits.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Protocol

    from synergy_job.departure import Departure
    from synergy_job.length import Length

    class Gang(Protocol):
        """What the training loop asks its gang."""

        @property
        def gpu_uuids(self) -> tuple[str, ...]:
            """GPUs to report."""

        @property
        def peers(self) -> tuple[str, ...]:
            """Addresses of the other processes, where this one knows them."""

        def join(self, step: int) -> bool:
            """Wait until all processes are there, each at `step`. False when this one must leave before that."""

        def proceed(self, step: int) -> bool:
            """Wait until the step after `step` may begin: True. False when all leave after `step`."""

        def finished(self, step: int) -> None:
            """`step` steps are done here."""

        def all_save(self, step: int, allowed: bool) -> bool:
            """Whether all processes save `step`: what rank 0 is `allowed`. All ask after the same steps."""

        def depart(self, step: int, saved: bool) -> str | None:
            """This process is done, and `step` is saved as far as that is its part: wait until all are done.

            Returns why training ends, for all processes the same; None if it goes on in another run, because it is not
            at its end or because a process could not save it.
            """

        def close(self) -> None:
            """Leave, at once and without a word if `depart` was not called."""


AHEAD = 2
"""Steps that a process may be ahead of the slowest. With one, each step would wait for a message there and back."""
JOIN_TIMEOUT_S = 600.0
POLL_S = 0.2
INTERRUPT_AFTER_S = 5.0
EXIT_AFTER_S = 15.0


class PeerLostError(RuntimeError):
    """Another process of the gang is gone, or the gang never came together."""


class Alone:
    """The gang of one."""

    def __init__(self, departure: Departure, length: Length, gpu_uuids: tuple[str, ...]) -> None:
        self._departure = departure
        self._length = length
        self.gpu_uuids = gpu_uuids
        self.peers: tuple[str, ...] = ()

    def join(self, step: int) -> bool:
        """Nobody to wait for."""
        return True

    def proceed(self, step: int) -> bool:
        """Until the departure is due, or training ends."""
        return self._length.end(step) is None and not self._departure.due()

    def finished(self, step: int) -> None:
        """Nobody to tell."""

    def all_save(self, step: int, allowed: bool) -> bool:
        """Nobody to ask."""
        return allowed

    def depart(self, step: int, saved: bool) -> str | None:
        """Nobody to wait for."""
        return self._length.end(step) if saved else None

    def close(self) -> None:
        """Nothing to close."""


class Watchdog:
    """Ends this process when its gang is broken and it does not notice, as in a collective operation that waits for
    ever for a dead peer: after 5 s it raises in the main thread, after 15 s it exits the process.

    The time during which `busy` (a checkpoint is being written) does not count.
    """

    def __init__(self, interrupt: Callable[[BaseException], None]) -> None:
        self._interrupt = interrupt
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._barking = False
        self.busy = False

    def bark(self, reason: str) -> None:
        """The gang is broken; the first call starts the clock."""
        with self._lock:
            if self._barking or self._closed.is_set():
                return
            self._barking = True
        threading.Thread(target=self._watch, args=(reason,), name="synergy-watchdog", daemon=True).start()

    def close(self) -> None:
        """The loop has been left: all is well."""
        self._closed.set()

    def _watch(self, reason: str) -> None:
        waited, interrupted = 0.0, False
        while not self._closed.wait(POLL_S):
            if self.busy:
                continue
            waited += POLL_S
            if waited >= INTERRUPT_AFTER_S and not interrupted:
                interrupted = True
                self._interrupt(PeerLostError(reason))
            if waited >= EXIT_AFTER_S:
                sys.stderr.write(f"synergy_job: {reason}; the running step does not end: exiting\n")
                sys.stderr.flush()
                os._exit(1)
