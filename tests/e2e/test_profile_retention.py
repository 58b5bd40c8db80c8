"""The installed operator keeps so many published ThroughputProfiles, and deletes the others by a right of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

import pytest

from support.on_cluster.jobs import matrix
from support.waiting import eventually
from synergy_api.names import LABEL_PUBLISHED
from synergy_api.timestamps import format_time
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import THROUGHPUT_PROFILES
from synergy_operator.profile.known_profiles import MOST_PUBLISHED

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("product")]

_AT_ONCE = 32
_BY_HAND = "writtenbyhand"


async def test_of_one_profile_too_many_the_oldest_goes_and_what_was_written_by_hand_stays(kube: KubeClient) -> None:
    names = [f"published{number:04}" for number in range(MOST_PUBLISHED + 1)]
    try:
        await _create(kube, _BY_HAND, 0.0, {})
        await _each(names, lambda name: _create(kube, name, 60.0 + names.index(name), {LABEL_PUBLISHED: "true"}))

        async def kept() -> set[str]:
            found: set[str] = set()
            async for page in kube.pages(THROUGHPUT_PROFILES, label_selector=LABEL_PUBLISHED):
                found |= {item["metadata"]["name"] for item in page}
            return found if len(found) == MOST_PUBLISHED else set()

        left = await eventually(kept, seconds=120, what="the operator to delete the surplus", every=2)
        assert names[0] not in left
        assert names[-1] in left
        assert await kube.get(THROUGHPUT_PROFILES, _BY_HAND)
    finally:
        await _each([*names, _BY_HAND], lambda name: _delete(kube, name))


async def _create(kube: KubeClient, name: str, measured_at: float, labels: Mapping[str, str]) -> None:
    spec = {
        "fingerprint": name,
        "image": "example/train:1",
        "gpus": 1,
        "matrices": [matrix("V100", {1000: 1.0}, 1 << 30)],
        "measuredAt": format_time(measured_at),
    }
    await kube.create(THROUGHPUT_PROFILES, {"metadata": {"name": name, "labels": labels}, "spec": spec})


async def _delete(kube: KubeClient, name: str) -> None:
    with suppress(NotFound):
        await kube.delete(THROUGHPUT_PROFILES, name)


async def _each(names: Sequence[str], do: Callable[[str], Awaitable[None]]) -> None:
    for first in range(0, len(names), _AT_ONCE):
        await asyncio.gather(*(do(name) for name in names[first : first + _AT_ONCE]))
