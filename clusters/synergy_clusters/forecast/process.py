"""Forecasts in a process for each round of offers: the controller goes on meanwhile, and the memory is free again."""

import asyncio
import logging
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from synergy_clusters.forecast.child import LENGTH, Message, frames
from synergy_clusters.forecast.look import NoForecastError
from synergy_clusters.forecast.prospects import Placed, Question

_LOG = logging.getLogger(__name__)
MOST_SECONDS: Final = 60.0
"""A process that is longer at reading one cluster, or at the forecast of one job in one, is ended."""
_STARTS: Final = 2
"""How often a process is started that ends before it has told a cluster."""
_CHILD: Final = "synergy_clusters.forecast.child"


@dataclass(frozen=True, slots=True)
class Answers:
    """The cluster for each job. `ended_at` is the cluster at which the process was when it ended too early, empty if it
    did not: jobs without an answer are then not reached, and `problems` say why. `ended_by` is the job that it was
    forecasting there, empty if it was reading the cluster."""

    placed: dict[str, Placed]
    ended_at: str = ""
    why: str = ""
    ended_by: str = ""


async def placed(question: Question) -> Answers:
    """The answers. A process that ends before it has told a cluster, or does not start, is started again; if that does
    not help, it raises NoForecastError."""
    if not question.jobs:
        return Answers({})
    request = await asyncio.to_thread(lambda: tuple(frames(question)))
    why = ""
    for _ in range(_STARTS):
        answers = await _answers(question, request)
        if answers.ended_at or not answers.why:
            return answers
        why = answers.why
        _LOG.error("there is no forecast of any cluster: %s", why)
    raise NoForecastError(why)


async def _answers(question: Question, request: Sequence[bytes]) -> Answers:
    """What one process answers. `why` without `ended_at`: it ended before it had told a cluster, or did not start."""
    try:
        child = await asyncio.create_subprocess_exec(sys.executable, "-m", _CHILD, stdin=PIPE, stdout=PIPE)
    except OSError as error:  # too many processes, or no memory for another
        return Answers({}, why=f"the process of a forecast does not start: {error}")
    asking = asyncio.create_task(_ask(child, request))
    found: dict[str, Placed] = {}
    by, cluster = "", ""
    try:
        async with asyncio.timeout(MOST_SECONDS) as limit:
            while len(found) < len(question.jobs):
                job, told = await _message(child)
                limit.reschedule(asyncio.get_running_loop().time() + MOST_SECONDS)
                if isinstance(told, Placed):
                    found[job] = told
                else:
                    by, cluster = job, told
        return Answers(found)
    except TimeoutError:
        why = f"a forecast took longer than {MOST_SECONDS:g} s"
    except (asyncio.IncompleteReadError, ConnectionError):
        why = "the process of a forecast died"
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
        asking.cancel()
        await asyncio.wait((asking,))
    if not cluster:
        return Answers({}, why=why)
    unreached = Placed(None, {cluster: why}, reached=False)
    return Answers({**{asked.name: unreached for asked in question.jobs}, **found}, cluster, why, by)


async def _ask(child: Process, request: Sequence[bytes]) -> None:
    assert child.stdin is not None, "it is a pipe"
    with suppress(ConnectionError):  # it has died: what it told before is read all the same
        for part in request:
            child.stdin.write(part)
            await child.stdin.drain()
    child.stdin.close()


async def _message(child: Process) -> Message:
    assert child.stdout is not None, "it is a pipe"
    (length,) = LENGTH.unpack(await child.stdout.readexactly(LENGTH.size))
    message: Message = pickle.loads(await child.stdout.readexactly(length))  # noqa: S301 - from a process of its own
    return message
