"""Makes forecasts in child processes: plans and verbs do not wait for them."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from typing import Final

import msgspec

from synergy_extender.forecasts.question import MOST_BYTES, NO_MEMORY, ForecastAnswer, ForecastQuestion

_CHILD: Final = "synergy_extender.forecasts.process"
_ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""A forecast uses at most one core."""


class ForecastFailed(Exception):  # noqa: N818 - named after what happened
    """The process died or took too long."""


class ForecastWorker:
    """Makes forecasts, each in a child process of its own, within `timeout_s` seconds."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    async def forecast(self, question: ForecastQuestion) -> ForecastAnswer:
        """The forecast. Raises ForecastFailed."""
        request = await asyncio.to_thread(msgspec.msgpack.encode, question)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", _CHILD, stdin=PIPE, stdout=PIPE, env={**os.environ, **_ONE_THREAD}
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                told, _ = await child.communicate(request)
        except TimeoutError:
            raise ForecastFailed(f"the forecast took more than {self._timeout_s:g} s") from None
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode == NO_MEMORY:
            raise ForecastFailed(f"the forecast needs more than {MOST_BYTES >> 20} MiB")
        if child.returncode:
            raise ForecastFailed(f"the process of the forecast ended with {child.returncode}")
        return msgspec.msgpack.decode(told, type=ForecastAnswer)
