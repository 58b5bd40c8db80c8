"""The planner in a process of its own: a long solve never delays a filter: the side that asks."""

import asyncio
import logging
import math
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from types import MappingProxyType

import msgspec

from synergy_core.model import snapshot as core
from synergy_core.model.config import PlanConfig
from synergy_extender.planner.question import LENGTH, Answer, Asked, Planned, planned_of, question_after
from synergy_extender.snapshot.times import Clocks
from synergy_service.tracing import span

_LOG = logging.getLogger(__name__)
_CHILD = "synergy_extender.planner.process"
_ANSWERS = msgspec.msgpack.Decoder(Answer | str)
NO_CLOCKS: Clocks = MappingProxyType({})


class PlanFailed(Exception):  # noqa: N818 - named after what happened
    """The planner raised, died, or took too long."""


class PlanWorker:
    """Runs `plan()` in a child process, which is started when needed and again after it died."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._child: Process | None = None
        self._known: Asked | None = None
        """What the child has seen last."""
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """Process id of the child, if one was started."""
        return self._child.pid if self._child is not None else None

    async def plan(
        self, snapshot: core.Snapshot, config: PlanConfig, solve_s: float = math.inf, clocks: Clocks = NO_CLOCKS
    ) -> Planned:
        """The plan; for a new allocation it waits `solve_s` at most. `clocks` tell the times of the jobs that have one.

        Raises PlanFailed; after a timeout the child is killed and the next call starts another.
        """
        async with self._turn:
            try:
                async with asyncio.timeout(self._timeout_s):
                    with span("plan", mode=config.mode, jobs=len(snapshot.jobs), nodes=len(snapshot.nodes)):
                        answer = await self._ask(Asked(snapshot, clocks), config, solve_s)
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

    async def start(self) -> None:
        """Start the child before it is needed: its imports take 0.6 s. If it cannot be started, the
        next plan says so."""
        with suppress(OSError):
            async with self._turn:
                await self._running()

    async def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            if child.returncode is None:
                child.kill()
            await child.wait()

    async def _running(self) -> Process:
        child = self._child
        if child is None or child.returncode is not None:
            child = await asyncio.create_subprocess_exec(sys.executable, "-m", _CHILD, stdin=PIPE, stdout=PIPE)
            self._child, self._known = child, None
        return child

    async def _ask(self, asked: Asked, config: PlanConfig, solve_s: float) -> Planned | str:
        child = await self._running()
        if child.stdin is None or child.stdout is None:
            raise ConnectionError("the planner's process has no pipes")
        request = await asyncio.to_thread(_request, self._known, asked, config, solve_s)
        self._known = asked
        child.stdin.write(LENGTH.pack(len(request)) + request)
        await child.stdin.drain()
        (length,) = LENGTH.unpack(await child.stdout.readexactly(LENGTH.size))
        answer = await asyncio.to_thread(_planned, await child.stdout.readexactly(length), asked)
        if isinstance(answer, str):
            self._known = None  # it may not even have read the question
        return answer


def _request(before: Asked | None, asked: Asked, config: PlanConfig, solve_s: float) -> bytes:
    return msgspec.msgpack.encode(question_after(before, asked, config, solve_s))


def _planned(told: bytes, asked: Asked) -> Planned | str:
    answer: Answer | str = _ANSWERS.decode(told)
    return answer if isinstance(answer, str) else planned_of(answer, asked.base.jobs)
