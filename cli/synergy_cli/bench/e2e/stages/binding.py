"""Pods bound per second: one kube-scheduler that asks the extender, the same one without it, and the same one with the
least that an extender can be, in turns."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from synergy_cli.bench.e2e.load import Seen, apply_jobs, delete_jobs
from synergy_cli.bench.e2e.percentiles import Histogram, histogram
from synergy_cli.bench.e2e.product import Product, Replica
from synergy_kube import KubeClient

VERB_SECONDS = "kube_synergy_verb_seconds"
_WAIT_SECONDS = 120.0


class Asked(StrEnum):
    """Whom the scheduler asks."""

    NOBODY = "nobody"
    EXTENDER = "extender"
    BARE = "bare"


@dataclass(frozen=True)
class Binding:
    """Pods per second from the first to the last that was seen bound, the median of the turns; `ratio` compares with no
    extender, `ratio_to_bare` with the reference. Times of the verbs in milliseconds as the extender counted them while
    the pods were bound."""

    pods: int
    with_extender_per_s: float
    without_extender_per_s: float
    with_bare_extender_per_s: float
    ratio: float
    ratio_to_bare: float
    turns_with: list[float]
    turns_without: list[float]
    turns_bare: list[float]
    filter_p50_ms: float
    filter_p99_ms: float
    bind_p50_ms: float
    bind_p99_ms: float


async def measure_binding(
    product: Product, kube: KubeClient, seen: Seen, extender: Replica, *, pods: int, turns: int
) -> Binding:
    """The operator makes the pods of `pods` jobs while no scheduler runs; then it stops until all are bound. Nothing
    but the extender differs. The order changes from turn to turn."""
    per_s: dict[Asked, list[float]] = {asked: [] for asked in Asked}
    times: dict[str, list[Histogram]] = {"filter": [], "bind": []}
    for turn in range(turns):
        kinds = list(Asked)
        for asked in kinds[turn % 3 :] + kinds[: turn % 3]:
            names = [f"turn-{turn}-{asked}-{index:04}" for index in range(pods)]
            await apply_jobs(kube, seen.namespace, names)
            await seen.until("pods without gates", lambda: len(_free(seen)) == pods, _WAIT_SECONDS)
            before = await extender.metrics()
            rate = await _turn(product, seen, extender, f"{turn}-{asked}", asked)
            per_s[asked].append(rate)
            if asked is Asked.EXTENDER:
                after = await extender.metrics()
                for verb, found in times.items():
                    earlier = histogram(before, VERB_SECONDS, verb=verb)
                    found.append(histogram(after, VERB_SECONDS, verb=verb).since(earlier))
            await delete_jobs(kube, seen, names)
    rates = {asked: median(found) for asked, found in per_s.items()}
    return Binding(
        pods=pods,
        with_extender_per_s=rates[Asked.EXTENDER],
        without_extender_per_s=rates[Asked.NOBODY],
        with_bare_extender_per_s=rates[Asked.BARE],
        ratio=rates[Asked.EXTENDER] / rates[Asked.NOBODY],
        ratio_to_bare=rates[Asked.EXTENDER] / rates[Asked.BARE],
        turns_with=per_s[Asked.EXTENDER],
        turns_without=per_s[Asked.NOBODY],
        turns_bare=per_s[Asked.BARE],
        filter_p50_ms=_milliseconds(times["filter"], 0.5),
        filter_p99_ms=_milliseconds(times["filter"], 0.99),
        bind_p50_ms=_milliseconds(times["bind"], 0.5),
        bind_p99_ms=_milliseconds(times["bind"], 0.99),
    )


async def _turn(product: Product, seen: Seen, extender: Replica, name: str, asked: Asked) -> float:
    paused = [product.operator] if asked is Asked.EXTENDER else [product.operator, extender.program]
    free = _free(seen)
    for program in paused:
        program.pause()
    try:
        async with _address(product, extender, name, asked) as address:
            scheduler = await product.start_scheduler(f"scheduler-{name}", address)
            try:
                await seen.until("all pods to be bound", lambda: seen.bound() == len(free), _WAIT_SECONDS)
            finally:
                await scheduler.stop()
    finally:
        for program in paused:
            program.resume()
    moments = [seen.moments[uid] for uid in free]
    return (len(moments) - 1) / (max(moments) - min(moments))


@asynccontextmanager
async def _address(product: Product, extender: Replica, name: str, asked: Asked) -> AsyncIterator[str | None]:
    if asked is Asked.BARE:
        async with product.bare_extender(f"bare-extender-{name}") as address:
            yield address
    else:
        yield extender.address if asked is Asked.EXTENDER else None


def _free(seen: Seen) -> list[str]:
    return [pod["uid"] for pod in seen.pods if not pod["gated"] and not pod["node"]]


def _milliseconds(turns: Sequence[Histogram], share: float) -> float:
    """The median of the turns' percentiles."""
    found = [value for turn in turns if (value := turn.percentile(share)) is not None]
    return 1000 * median(found) if found else 0.0
