"""Plans parts of a cluster at the same time: some in this process, the others in forked ones.

A fork has the snapshot already, and sends its plans back through a pipe. It costs memory only while it plans. If it
fails, or cannot be made, its parts are planned here. It ends with the process that made it.
"""

import ctypes
import logging
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.plan import plan

_LOG = logging.getLogger(__name__)
_SET_SIGNAL_OF_PARENTS_DEATH: Final = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""

PlanOne = Callable[[Snapshot, PlanConfig], Plan]


@dataclass(frozen=True)
class _Fork:
    """A process that plans some of the parts."""

    pid: int
    answers: int
    """The reading end of its pipe."""


class Forked:
    """Plans snapshots in so many processes at most, this one included."""

    def __init__(self, processes: int, plan_one: PlanOne = plan) -> None:
        self._processes = processes
        self._plan_one = plan_one

    def __call__(self, parts: Sequence[Snapshot], config: PlanConfig) -> list[Plan]:
        """The plans of the parts, in their order. Raises what `plan` raises."""
        own, *others = _dealt_out(parts, self._processes) or [[]]
        forks = [(indices, self._forked(parts, indices, config)) for indices in others]
        found: dict[int, Plan] = {}
        try:
            found |= {index: self._plan_one(parts[index], config) for index in own}
        finally:
            answers = [(indices, None if fork is None else _answer(fork)) for indices, fork in forks]
        for indices, answer in answers:
            if answer is None:
                _LOG.warning("a process that planned %d parts of the cluster failed", len(indices))
            plans = [self._plan_one(parts[index], config) for index in indices] if answer is None else answer
            found |= zip(indices, plans, strict=True)
        return [found[index] for index in range(len(parts))]

    def _forked(self, parts: Sequence[Snapshot], indices: list[int], config: PlanConfig) -> _Fork | None:
        """None if the machine has no room for another process."""
        parent = os.getpid()
        try:
            reading, writing = os.pipe()
        except OSError:
            return None
        try:
            pid = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            return None
        if pid:
            os.close(writing)
            return _Fork(pid, reading)
        try:
            _end_with(parent)
            os.close(reading)
            answer = pickle.dumps([self._plan_one(parts[index], config) for index in indices], protocol=5)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(answer)
            os._exit(0)
        except BaseException:  # noqa: BLE001 - a fork must not go on with what this process does
            traceback.print_exc()
            os._exit(1)


def _end_with(parent: int) -> None:
    """Whoever gives up a plan kills the parent. Without it nobody would end this process."""
    ctypes.CDLL(None).prctl(_SET_SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _answer(fork: _Fork) -> list[Plan] | None:
    """What the process found; None if it failed."""
    with os.fdopen(fork.answers, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(fork.pid, 0)
    if status != 0:
        return None
    plans: list[Plan] = pickle.loads(answer)  # noqa: S301 - from a fork of this process
    return plans


def _dealt_out(parts: Sequence[Snapshot], processes: int) -> list[list[int]]:
    """The parts of each process, the largest parts first, each to the process that has least."""
    sizes = [len(part.jobs) + len(part.nodes) for part in parts]
    bins: list[list[int]] = [[] for _ in range(min(processes, len(parts)))]
    for index in sorted(range(len(parts)), key=lambda index: -sizes[index]):
        min(bins, key=lambda one: sum(sizes[other] for other in one)).append(index)
    return bins
