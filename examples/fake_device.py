"""Replaces an accelerator on a machine without one: it takes its time for each step, beside the host, computing
nothing.

What a real device would compute the scripts compute on the host, small enough to cost next to nothing.
"""

import time

from fake_mps import Client

TIMER_S = 0.002
"""A sleep ends late by less than this; it is not the host's fault and does not count."""


class FakeDevice:
    """Runs steps one after another, `seconds` each, asynchronously as a GPU does; longer where `client` is one of
    several on its GPU."""

    def __init__(self, seconds: float, client: Client | None = None) -> None:
        self._seconds = seconds
        self._client = client
        self._busy_until = 0.0

    def launch(self) -> None:
        """Begin a step. Waits for the one before, and returns while this one runs."""
        self.finish()
        now = time.monotonic()
        in_time = now - self._busy_until < TIMER_S
        slowed = 1.0 if self._client is None else self._client.slowed()
        if self._client is not None:
            self._client.worked(self._seconds / slowed)
        self._busy_until = (self._busy_until if in_time else now) + self._seconds / slowed

    def finish(self) -> None:
        """Wait until the running step is done."""
        left = self._busy_until - time.monotonic()
        if left > 0:
            time.sleep(left)
