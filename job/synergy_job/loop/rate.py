"""Measured throughput over a sliding window."""

from __future__ import annotations

from collections import deque

WINDOW_S = 30.0
_KEPT = 512


class RateWindow:
    """Steps per second over the last `window_s` seconds, or over the last two steps where those are further apart.

    Holds at most some 500 points however fast the steps are.
    """

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._points: deque[tuple[float, int]] = deque(maxlen=_KEPT)

    def add(self, step: int, now: float) -> None:
        """Step number `step` (steps done) was finished at `now`, in seconds."""
        points = self._points
        if len(points) >= 2 and now - points[-2][0] < self._window_s / _KEPT:
            points.pop()
        points.append((now, step))
        while len(points) > 2 and points[1][0] <= now - self._window_s:
            points.popleft()

    def steps_per_second(self, now: float) -> float:
        """The rate at `now`; it falls while no step is finished, 0 before two steps are known."""
        points = list(self._points)
        if len(points) < 2:
            return 0.0
        (first, first_step), (last, last_step) = points[0], points[-1]
        span = last - first
        if now - last > max(self._window_s, span):
            span = now - first
        return (last_step - first_step) / span if span > 0 else 0.0
