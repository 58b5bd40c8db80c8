"""Until when this process may change the job's checkpoints.

Where a node is cut off, the job's next run waits until the old worker has surely stopped writing: for the fence's time
after the old pod's deletion. So a worker counts the same time from the last answer that it got, and writes nothing
after it. The protocol and what it assumes: docs/decisions/0027-fencing.md.
"""

from __future__ import annotations

import time

DEFAULT_SECONDS = 600.0
REFUSED_SECONDS = 60.0
"""How long a lease may be refused before the worker leaves: a token may be on its way to being rotated."""
REFUSED_TIMES = 3
_LEAVE_PART = 0.7
"""Of the fence's time: unheard for so long, the worker saves and leaves while it still may."""


class FencedError(RuntimeError):
    """This process may not change checkpoints any more; the message says why. The newest whole checkpoint stays."""


def now() -> float:
    """Seconds of a clock that nobody sets and that also counts while the machine is suspended."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Fence:
    """One worker's fence. Written by the lease thread, read by the training thread: plain attributes, no lock.

    `seconds` is how long the worker may go on without an answer of the extender.
    """

    def __init__(self, seconds: float = DEFAULT_SECONDS) -> None:
        self.seconds = seconds
        self._heard_at = now()
        self._refused_since: float | None = None
        self._refused_at = 0.0
        self._refusals = 0
        self._reason = ""

    def heard(self, asked_at: float) -> None:
        """The extender answered a report that was sent at `asked_at`, and wants this run to go on. The answer's own
        time does not count: it may have been on its way for long."""
        self._heard_at = max(self._heard_at, asked_at)
        self._refused_since, self._refusals = None, 0

    def told_to_leave(self) -> None:
        """The extender takes this pod for a worker, and wants its run to leave. The right to write is not extended: the
        pod may have been deleted long ago, and the next run counts from then."""
        self._refused_since, self._refusals = None, 0

    def refused(self, why: str) -> None:
        """The extender does not take this pod for a worker of the job (401, 403)."""
        self._refusals += 1
        self._refused_at = now()
        if self._refused_since is None:
            self._refused_since = self._refused_at
        if self._refusals >= REFUSED_TIMES and now() - self._refused_since >= REFUSED_SECONDS:
            self._reason = f"the extender refuses this pod's lease: {why}"

    @property
    def shut(self) -> str:
        """Why this worker has to leave without another checkpoint; empty while it need not."""
        if not self._reason and now() - self._heard_at >= self.seconds:
            self._reason = f"no answer of the extender for {self.seconds:.0f} s"
        return self._reason

    @property
    def leave_in_s(self) -> float:
        """Seconds until a worker without answers must leave, with a last checkpoint that it may still write then; 0
        where it has to leave now."""
        if self.shut:
            return 0.0
        return max(0.0, self._heard_at + _LEAVE_PART * self.seconds - now())

    @property
    def should_leave(self) -> bool:
        """Whether the worker has to leave now."""
        return self.leave_in_s <= 0.0

    def check(self) -> None:
        """Raises FencedError where checkpoints may not be changed: the fence is shut, or the lease is refused."""
        if self.shut:
            raise FencedError(f"no checkpoint is written: {self._reason}")
        if self._is_refused:
            raise FencedError("no checkpoint is written while the extender refuses this pod's lease")

    @property
    def may_save(self) -> bool:
        """Whether `check` lets a checkpoint through."""
        return not self.shut and not self._is_refused

    @property
    def _is_refused(self) -> bool:
        """Whether the extender's last word is a refusal. After a while without another word it counts no more: the
        right to write ends with the fence's time all the same."""
        return self._refused_since is not None and now() - self._refused_at < REFUSED_SECONDS


_current: Fence | None = None


def install(fence: Fence | None) -> None:
    """From now on this fence guards the checkpoints that this process writes."""
    global _current  # noqa: PLW0603 - `atomic_file` is called by the user's own functions, with a path and nothing else
    _current = fence


def check() -> None:
    """Raises FencedError where the process's fence does not let checkpoints be changed."""
    if _current is not None:
        _current.check()
