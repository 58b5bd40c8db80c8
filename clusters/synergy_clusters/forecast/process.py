"""Forecasts in a process for each round of offers: the controller goes on meanwhile, and the memory is free again."""

import asyncio
import multiprocessing
import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

from synergy_clusters.forecast.look import NoForecastError
from synergy_clusters.forecast.prospects import Placed, Question, place

SECONDS: Final = 30.0
"""After so long no further job of a round is begun; the next round has it."""
_NICENESS: Final = 10
_MOST_BYTES: Final = 1 << 30
"""A round that needs more memory fails."""


async def placed(question: Question) -> dict[str, Placed]:
    """The cluster for each job. Raises NoForecastError if the process fails."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=context, initializer=_behave)
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, _place, question)
    except (BrokenProcessPool, MemoryError) as error:
        raise NoForecastError(f"the process of the forecast failed: {error}") from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _behave() -> None:
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))


def _place(question: Question) -> dict[str, Placed]:
    end = time.monotonic() + SECONDS
    return place(question, lambda: time.monotonic() < end)
