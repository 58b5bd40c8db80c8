"""SIGTERM: ask to leave after the running step; and the way to interrupt a step that waits for a dead peer."""

from __future__ import annotations

import logging
import os
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synergy_job.departure import Departure

log = logging.getLogger("synergy_job")


class Signals:
    """The handler of SIGTERM while training runs."""

    def __init__(self, departure: Departure) -> None:
        self._departure = departure
        self._pid = os.getpid()
        self._error: BaseException | None = None
        self._previous: Any = None
        self._installed = False
        self.interruptible = False
        """True while the user's code trains: only then may `interrupt` raise in it."""

    def install(self) -> None:
        """Take SIGTERM over. Only the main thread can; elsewhere SIGTERM keeps its meaning, with a warning."""
        if threading.current_thread() is not threading.main_thread():
            log.warning("iterate() does not run in the main thread: SIGTERM will end the job without a checkpoint")
            return
        self._previous = signal.signal(signal.SIGTERM, self._handle)
        self._installed = True

    def restore(self) -> None:
        """Give SIGTERM back."""
        if self._installed and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._previous if self._previous is not None else signal.SIG_DFL)
            self._installed = False

    def interrupt(self, error: BaseException) -> None:
        """Raise `error` in the main thread, out of a blocking call too, if it runs the user's code. From any thread."""
        self._error = error
        ident = threading.main_thread().ident
        if self._installed and ident is not None:
            signal.pthread_kill(ident, signal.SIGTERM)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if os.getpid() != self._pid:
            # A process that the loader forked has inherited this handler; to it SIGTERM means what it always did.
            signal.signal(signum, signal.SIG_DFL)
            os.kill(os.getpid(), signum)
        elif self._error is None:
            self._departure.request()
        elif self.interruptible:
            raise self._error
