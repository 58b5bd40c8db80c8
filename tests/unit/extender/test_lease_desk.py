"""Reports that reach a replica whose watch of the jobs is behind its watch of the pods."""

import time

import pytest

from support.cluster import allocation, job_object, share, worker
from support.watch_server import WatchServer, following
from synergy_extender.leases.desk import LeaseDesk, NotReadyError
from synergy_extender.leases.progress_writer import ProgressWriter
from synergy_extender.leases.reports import Report
from synergy_extender.leases.tokens import Identity, Reviewer
from synergy_extender.metrics import Metrics
from synergy_extender.rounds import Rounds


class KnownToken(Reviewer):
    """The API server's word on the one token there is."""

    async def identify(self, token: str, audience: str | None) -> Identity | None:
        return Identity({}, "system:serviceaccount:team:default", "team", "j-2-1", "uid-j-2-1")


@pytest.mark.parametrize("known", [None, allocation(run=1, state="Released", until=None)])
async def test_a_worker_of_a_run_that_is_not_known_yet_is_not_sent_away(known: dict[str, object] | None) -> None:
    held = allocation(share("n1"), run=2, until=time.time() + 20)
    async with following(WatchServer(job_object(status={"allocation": known} if known else {}))) as (client, cache):
        cache.pods.put(worker(run=2, rank=1, node="n1", gpus=1))
        reviewer, writer = KnownToken(client, time.monotonic), ProgressWriter(client, cache.observe)
        desk = LeaseDesk(cache, reviewer, writer, Metrics(), rounds=lambda: Rounds(20), clock=time.time)
        with pytest.raises(NotReadyError, match="has not seen run 2"):
            await desk.report("token", Report(step=1))
        cache.observe(job_object(status={"allocation": held}, resourceVersion="20"))
        assert (await desk.report("token", Report(step=1))).verdict == "continue"
