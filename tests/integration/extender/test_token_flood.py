"""Made-up tokens by the thousand beside a worker that renews its lease."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from support.extender.made_up_tokens import made_up
from support.extender.servers import trusting
from support.extender.world import Object, Operator, Replica
from support.waiting import eventually
from synergy_devcluster import Cluster
from synergy_extender.leases.review_turns import PEER_BURST, PEER_RATE, UNKNOWN_BURST, UNKNOWN_RATE

pytestmark = pytest.mark.integration

ATTACKER = "127.0.0.66"
SENDERS = 48
RENEWALS = 25
RENEWED_WITHIN_SECONDS = 3.0
REPORT = {"step": 1, "checkpoint_step": 0, "steps_per_second": 1.0}
"""The library waits 5 s for an answer."""


class Flood:
    """Tokens, each another one, from one address: of pods that nobody knows, of the victim's pod, of its namespace."""

    def __init__(self, replica: Replica, victim: Object) -> None:
        self._replica = replica
        metadata = victim["metadata"]
        self._named = (metadata["namespace"], metadata["name"], metadata["uid"])
        self.answers: Counter[int] = Counter()

    async def send(self, session: aiohttp.ClientSession) -> None:
        """Send until cancelled."""
        namespace, name, uid = self._named
        while True:
            for token in (made_up(), made_up(namespace, name, uid), made_up(namespace, name)):
                headers = {"Authorization": f"Bearer {token}"}
                url = f"https://127.0.0.1:{self._replica.api_port}/v1/lease"
                async with session.post(url, json=REPORT, headers=headers) as answer:
                    self.answers[answer.status] += 1

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """The flood comes meanwhile."""
        connector = aiohttp.TCPConnector(ssl=trusting(self._replica.authority), local_addr=(ATTACKER, 0), limit=SENDERS)
        async with aiohttp.ClientSession(connector=connector) as session:
            tasks = [asyncio.create_task(self.send(session)) for _ in range(SENDERS)]

            async def begun() -> bool:
                return self.answers.total() > 3 * SENDERS

            await eventually(begun, seconds=20, what="the flood", every=0.02)
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(error, asyncio.CancelledError) for error in ended), ended


async def reviews(operator: Operator) -> float:
    """How many TokenReviews the API server has answered."""
    text = (await operator.kube._bytes("GET", "/metrics")).decode()
    counts = re.findall(r'^apiserver_request_total\{.*resource="tokenreviews".*\} (\S+)$', text, re.MULTILINE)
    return sum(map(float, counts))


async def test_a_worker_renews_its_lease_through_a_flood_of_made_up_tokens(
    operator: Operator, extender: Replica, devcluster: Cluster, kube_scheduler: object
) -> None:
    await operator.submit("victim", gpus=1)
    granted = await operator.allocation("victim", state="Granted", admitted=True)
    (pod,) = await operator.start("victim", granted)
    await operator.bound(pod["metadata"]["name"])
    tokens = [await operator.token(pod) for _ in range(RENEWALS)]  # each is new to the extender: the worst case
    flood = Flood(extender, pod)
    longest = 0.0
    async with flood.going_on(), extender.api() as api:
        before, began = await reviews(operator), time.monotonic()
        for token in tokens:
            sent = time.monotonic()
            answer = await api.post("/v1/lease", json=REPORT, headers={"Authorization": f"Bearer {token}"})
            longest = max(longest, time.monotonic() - sent)
            assert answer.status_code == 200, answer.text
        seconds, asked = time.monotonic() - began, await reviews(operator) - before
        came = flood.answers.total()
    assert longest < RENEWED_WITHIN_SECONDS
    assert set(flood.answers) <= {401, 503}, "nobody was let in, nothing broke"
    allowed = PEER_BURST + UNKNOWN_BURST + (PEER_RATE + UNKNOWN_RATE) * seconds + RENEWALS
    assert asked <= allowed + 10, f"{came} made-up tokens cost {asked} reviews"
    print(f"{came} made-up tokens in {seconds:.1f} s, {asked:.0f} reviews, slowest renewal {longest * 1000:.0f} ms")
