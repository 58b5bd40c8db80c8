"""The planner in a process of its own, so that a long solve never delays a filter.

The child reads a length and a pickled (snapshot, config) from stdin and answers the same way on stdout; it ends when its
stdin does.
"""

import asyncio
import logging
import pickle
import struct
import sys
import time
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass
from typing import BinaryIO

from synergy_core.plan import plan

from synergy_core import model as core

_LOG = logging.getLogger(__name__)
_LENGTH = struct.Struct("!Q")


class PlanFailed(Exception):  # noqa: N818 - named after what happened
    """The planner raised, died, or took too long."""


@dataclass(frozen=True)
class Planned:
    """A plan and how many seconds `plan()` took."""

    plan: core.Plan
    seconds: float


class PlanWorker:
    """Runs `plan()` in a child process, which is started when needed and again after it died."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._child: Process | None = None
        self._turn = asyncio.Lock()

    async def plan(self, snapshot: core.Snapshot, config: core.PlanConfig) -> Planned:
        """The plan. Raises PlanFailed; after a timeout the child is killed and the next call starts another."""
        async with self._turn:
            try:
                async with asyncio.timeout(self._timeout_s):
                    answer = await self._ask(pickle.dumps((snapshot, config), protocol=5))
            except TimeoutError:
                await self.close()
                raise PlanFailed(f"the planner took more than {self._timeout_s:g} s") from None
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                await self.close()
                raise PlanFailed("the planner's process died") from error
            except BaseException:
                await self.close()  # the answer of a call that was given up must not be taken for the next one's
                raise
        if isinstance(answer, str):
            raise PlanFailed(answer)
        return answer

    async def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            if child.returncode is None:
                child.kill()
            await child.wait()

    async def _ask(self, request: bytes) -> Planned | str:
        child = self._child
        if child is None or child.returncode is not None:
            child = await asyncio.create_subprocess_exec(sys.executable, "-m", __name__, stdin=PIPE, stdout=PIPE)
            self._child = child
        if child.stdin is None or child.stdout is None:
            raise ConnectionError("the planner's process has no pipes")
        child.stdin.write(_LENGTH.pack(len(request)) + request)
        await child.stdin.drain()
        (length,) = _LENGTH.unpack(await child.stdout.readexactly(_LENGTH.size))
        answer: Planned | str = pickle.loads(await child.stdout.readexactly(length))  # noqa: S301 - from our own child
        return answer


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more. An error of the planner is answered as its text."""
    while len(header := requests.read(_LENGTH.size)) == _LENGTH.size:
        (length,) = _LENGTH.unpack(header)
        answer = pickle.dumps(_answer(requests.read(length)), protocol=5)
        answers.write(_LENGTH.pack(len(answer)) + answer)
        answers.flush()


def _answer(request: bytes) -> Planned | str:
    try:
        snapshot, config = pickle.loads(request)  # noqa: S301 - from our own parent
        started = time.perf_counter()
        return Planned(plan(snapshot, config), time.perf_counter() - started)
    except Exception as error:  # noqa: BLE001 - a planner's error must not end the process, it goes to the log
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    # under -m this module's name is __main__, and what is pickled must be found by its real name on the other side
    from synergy_extender.planning import worker

    worker.serve(sys.stdin.buffer, sys.stdout.buffer)
