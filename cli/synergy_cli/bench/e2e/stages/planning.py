"""Filter calls while rounds are planned and written: of the extender, and of a bare one at the same moments."""

import asyncio
import time
from dataclasses import dataclass

import click

from synergy_cli.bench.e2e.percentiles import counter, histogram
from synergy_cli.bench.e2e.polling import polled
from synergy_cli.bench.e2e.product import Product, Replica
from synergy_cli.bench.e2e.stages.filtering import Caller, Filtering, summary
from synergy_cli.bench.e2e.stages.scale import PLAN_SECONDS, ROUNDS
from synergy_extender.rounds import Rounds

_ROUNDS = 5
"""In one round a hundred calls find room: too few for a 99th percentile."""
_BEFORE_SECONDS = 0.1
_WINDOW_SECONDS = 1.0
"""For the plan of a round and most of its writing. Nothing else is asked meanwhile: a look at the metrics would take
the extender some milliseconds, and the bare one none."""
_CONNECT_SECONDS = 8.0
"""For the callers to start. An extender closes a connection over which nothing comes for 10 s."""


@dataclass(frozen=True)
class WhilePlanning:
    """What filter calls took at the extender and at the bare one, and milliseconds of a round's plan."""

    filter: Filtering
    filter_bare: Filtering
    plan_ms: float | None


async def filter_while_planning(
    product: Product, extender: Replica, bare: str, body: bytes, rounds: Rounds, *, names: int, every_s: float
) -> WhilePlanning:
    """Both are called while several rounds are planned; `bare` is the address of the bare extender, `body` asks for one
    worker with so many node `names`."""
    before = await extender.metrics()
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        callers = [Caller(product, address, body, every_s=every_s) for address in (extender.address, bare)]
        for found, called in zip(seconds, await _through_a_round(extender, callers, rounds), strict=True):
            found.extend(called)
    now = await extender.metrics()
    plans = histogram(now, PLAN_SECONDS, mode="round").since(histogram(before, PLAN_SECONDS, mode="round"))
    own, its = (summary(found, names) for found in seconds)
    return WhilePlanning(own, its, None if plans.mean is None else 1000 * plans.mean)


async def _through_a_round(extender: Replica, callers: list[Caller], rounds: Rounds) -> list[list[float]]:
    """Seconds of the calls of each, from shortly before the next round is planned. Raises ClickException if the callers
    are not ready in time, or no round is planned."""
    planned_at = rounds.plan_time(rounds.due(time.time() + _CONNECT_SECONDS) + 1)
    await asyncio.sleep(planned_at - time.time() - _CONNECT_SECONDS)
    await asyncio.gather(*(caller.ready() for caller in callers))
    before = counter(await extender.metrics(), ROUNDS)
    spare_s = planned_at - time.time() - _BEFORE_SECONDS
    if spare_s < 0:
        raise click.ClickException(f"the clients of filter took more than {_CONNECT_SECONDS:.0f} s to connect")
    await asyncio.sleep(spare_s)
    calls = [caller.start() for caller in callers]
    await asyncio.sleep(_BEFORE_SECONDS + _WINDOW_SECONDS)
    for caller in callers:
        caller.stop()
    found = await asyncio.gather(*calls)

    async def planned() -> bool:
        return counter(await extender.metrics(), ROUNDS) > before

    await polled(planned, "a round to be planned", 2 * rounds.seconds)
    return found
