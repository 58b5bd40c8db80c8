"""How the types of the SDK come out for its user: checked by mypy, never run."""

from typing import assert_type

import kube_synergy
from kube_synergy import aio


def half(number: int) -> float:
    """A function to submit."""
    return number / 2


def plain_calls() -> None:
    """The job of a function knows what it returns; that of a script returns nothing."""
    job = kube_synergy.submit(half, args=[1], image="i", steps=1)
    assert_type(job, kube_synergy.Job[float])
    assert_type(job.result(), float)
    assert_type(kube_synergy.submit("train.py", image="i", steps=1), kube_synergy.Job[None])
    kube_synergy.submit(half, steps=1)  # type: ignore[call-overload]  # image is missing
    kube_synergy.submit(half, image="i", gpu=1)  # type: ignore[call-overload]  # it is gpus


async def coroutines() -> None:
    """The same."""
    assert_type(await (await aio.submit(half, args=[1], image="i", steps=1)).result(), float)
