"""Bytes that a worker sends in a step, in the time in which steps are measured, and how much of that the step hides.

What the command's processes send each other counts: a profile run has all of a job's workers on one node in it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synergy_job.sockets import Connection, SocketsError, among, connections, sent_between
from synergy_profiler.child import descendants
from synergy_profiler.traffic.nccl import log_environment, log_sizes, messages_since, sent_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

LEAST_BYTES = 4096
"""Less than this in a step is talk about training, not training."""
LEAST_EXPOSED = 0.02
"""Part of a step alone that sending must add before it tells how much of it is hidden."""

MOST_BEYOND = 0.1
"""By how much a step may get longer than sending takes, relative to that, and still be explained by it."""


@dataclass(frozen=True)
class Traffic:
    """Of one step and each of `workers`: bytes sent, and seconds in which its connections were sending, where known.

    Where NCCL tells, `largest_message_bytes` is the largest buffer of a collective call, `message_bytes` all of them.
    """

    source: Literal["Sockets", "NCCL"]
    workers: int
    bytes_per_step: int
    sending_seconds: float | None = None
    message_bytes: int | None = None
    largest_message_bytes: int | None = None
    overlap: float | None = None

    @property
    def model_bytes(self) -> int:
        """The bytes whose all-reduce in a ring sends as much: 2 (n - 1) / n of them go over each worker's link."""
        return round(self.bytes_per_step * self.workers / (2 * (self.workers - 1)))


class TrafficMeter:
    """Counts from `begin` to `end` what the processes of this container send each other. `close` removes its log."""

    def __init__(self, workers: int, environ: Mapping[str, str] | None = None) -> None:
        self._workers = workers
        self._folder = tempfile.mkdtemp(prefix="synergy-traffic-")
        self.environment = log_environment(os.environ if environ is None else environ, self._folder)
        self._before: dict[int, Connection] = {}
        self._logs: dict[str, int] = {}
        self._sent: list[Connection] = []
        self._calls: dict[str, list[tuple[str, int]]] = {}

    def begin(self, command: int) -> None:
        """The first measured step of the command (a process) begins."""
        self._before, self._logs = _among_workers(command), log_sizes(self._folder)

    def end(self, command: int) -> None:
        """The last measured step has ended."""
        self._sent = sent_between(self._before, _among_workers(command))
        self._calls = messages_since(self._folder, self._logs)

    def traffic(self, steps: int) -> Traffic | None:
        """What a worker has sent in each of so many steps; None if that is next to nothing."""
        if self._workers < 2 or steps < 1:
            return None
        return of_calls(self._calls, self._workers, steps) or of_sockets(self._sent, self._workers, steps)

    def close(self) -> None:
        """Remove the log."""
        shutil.rmtree(self._folder, ignore_errors=True)


def of_sockets(sent: Sequence[Connection], workers: int, steps: int) -> Traffic | None:
    """By the kernel's counters of both ends of all connections between the workers.

    The seconds are those of the connection that sent the longest: a ring waits for its slowest part.
    """
    each = sum(one.sent_bytes for one in sent) / workers / steps
    if each < LEAST_BYTES:
        return None
    return Traffic("Sockets", workers, round(each), max(one.busy_s for one in sent) / steps)


def of_calls(calls: Mapping[str, Sequence[tuple[str, int]]], workers: int, steps: int) -> Traffic | None:
    """By NCCL's log, which is that of each worker's calls: a mean over the workers."""
    flat = [one for of_process in calls.values() for one in of_process]
    each = sum(sent_bytes(call, size, workers) for call, size in flat) / max(1, len(calls)) / steps
    if each < LEAST_BYTES:
        return None
    whole = sum(size for _, size in flat) / len(calls) / steps
    largest = max(size for _, size in flat)
    return Traffic("NCCL", workers, round(each), None, max(largest, round(whole)), largest)


def overlap(sending_s: float, step_s: float, alone_s: float) -> float | None:
    """The part of a worker's step alone during which it sends for nothing (`all_reduce.OVERLAP` of the planner).

    A step with others takes `alone_s` and what sending adds. None where that cannot be told: sending adds next to
    nothing, so all of it is hidden and more might have been; or something else adds more than sending takes, such as
    workers that wait for each other's CPU.
    """
    added = step_s - alone_s
    if not LEAST_EXPOSED * alone_s <= added <= (1.0 + MOST_BEYOND) * sending_s:
        return None
    return min(1.0, max(0.0, sending_s - added) / alone_s)


def _among_workers(command: int) -> dict[int, Connection]:
    try:
        return among(connections(), [command, *descendants(command)])
    except SocketsError:
        return {}
