"""Reports that reach a replica whose watches are behind what the worker was made from."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import allocation, job_object, pod_object, share, worker_labels
from support.waiting import eventually
from synergy_api.parts.progress import Progress
from synergy_extender.cluster.fresh import FreshLook
from synergy_extender.cluster.views import JobView
from synergy_extender.leases.progress_writer import ProgressWriter
from synergy_extender.leases.reports import Report
from synergy_extender.leases.service import LeaseService, NotReadyError, NoWorkerError
from synergy_extender.leases.tokens import Identity, Reviewer
from synergy_extender.metrics import Metrics
from synergy_extender.rounds import Rounds

JOB = "/apis/kube-synergy.dev/v1alpha1/namespaces/team/trainingjobs/j"
POD, POD0 = "/api/v1/namespaces/team/pods/j-2-1", "/api/v1/namespaces/team/pods/j-2-0"
RUN_1_OVER = allocation(run=1, state="Released", until=None)


class KnownToken(Reviewer):
    """The API server's word on the one token there is."""

    async def identify(self, token: str, audience: str | None, **_: object) -> Identity | None:
        return Identity({}, "system:serviceaccount:team:default", "team", "j-2-1", "uid-j-2-1")


class Written(ProgressWriter):
    """Keeps what it is to write."""

    steps: list[int]

    async def apply(self, job: JobView, progress: Progress) -> None:
        self.steps.append(progress.steps or 0)


class LeadingToken(Reviewer):
    """The API server's word on the token of rank 0."""

    async def identify(self, token: str, audience: str | None, **_: object) -> Identity | None:
        return Identity({}, "system:serviceaccount:team:default", "team", "j-2-0", "uid-j-2-0")


async def test_that_a_job_is_done_is_written_although_it_was_told_to_leave_before() -> None:
    """And each only once: whoever says so again and again waits for the budget as others do."""
    revoked = allocation(share("n1"), run=2, until=time.time() + 20, state="Revoked")
    server = WatchServer(job_object(status={"allocation": revoked, "service": {"run": 2, "endedRun": 1}}))
    server.now[POD0] = pod_object("j-2-0", labels=worker_labels("j", 2, 0), node="n1", gpus=1)
    async with following(server) as (client, cache):
        reviewer, writer = LeadingToken(client, time.monotonic), Written(client, cache.observe)
        writer.steps = []
        fresh = FreshLook(client, cache)
        leases = LeaseService(cache, fresh, reviewer, writer, Metrics(), rounds=lambda: Rounds(20), clock=time.time)
        for step, done in ((74, False), (75, False), (150, True), (75, False), (150, True)):
            assert (await leases.report("token", Report(step=step, done=done))).verdict == "yield"
        await eventually(_once(lambda: len(writer.steps) == 2), seconds=10, what="both last reports to be written")
        assert writer.steps == [74, 150]


def _once(holds: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def probe() -> bool:
        return holds()

    return probe


@asynccontextmanager
async def lagging(server: WatchServer) -> AsyncIterator[LeaseService]:
    """A replica whose watches have brought only what the server lists; the pod of rank 1 of run 2 has just started."""
    server.now[POD] = pod_object("j-2-1", labels=worker_labels("j", 2, 1), node="n1", gpus=1)
    async with following(server) as (client, cache):
        reviewer, writer = KnownToken(client, time.monotonic), ProgressWriter(client, cache.observe)
        fresh = FreshLook(client, cache)
        yield LeaseService(cache, fresh, reviewer, writer, Metrics(), rounds=lambda: Rounds(20), clock=time.time)


@pytest.mark.parametrize("known", [{}, {"allocation": RUN_1_OVER}])
async def test_a_worker_of_a_run_that_the_watch_has_not_brought_yet_is_not_sent_away(known: dict[str, object]) -> None:
    server = WatchServer(job_object(status=known))
    held = allocation(share("n1"), run=2, until=time.time() + 20)
    server.now[JOB] = job_object(status={"allocation": held}, resourceVersion="20")
    async with lagging(server) as leases:
        assert (await leases.report("token", Report(step=1))).verdict == "continue"


async def test_a_worker_of_a_job_that_the_watch_has_not_brought_yet_is_not_sent_away() -> None:
    server = WatchServer()
    held = allocation(share("n1"), run=2, until=time.time() + 20)
    server.now[JOB] = job_object(status={"allocation": held}, resourceVersion="20")
    async with lagging(server) as leases:
        assert (await leases.report("token", Report(step=1))).verdict == "continue"


async def test_a_worker_of_a_run_that_the_api_server_does_not_know_either_leaves() -> None:
    server = WatchServer(job_object(status={"allocation": RUN_1_OVER}))
    server.now[JOB] = job_object(status={"allocation": RUN_1_OVER}, resourceVersion="20")
    async with lagging(server) as leases:
        answer = await leases.report("token", Report(step=1))
        assert (answer.verdict, answer.yield_in_s) == ("yield", 0.0)


async def test_a_worker_whose_job_or_pod_is_gone_is_refused() -> None:
    server = WatchServer()
    async with lagging(server) as leases:
        with pytest.raises(NoWorkerError, match="TrainingJob team/j does not exist"):
            await leases.report("token", Report(step=1))
        del server.now[POD]
        with pytest.raises(NoWorkerError, match="not bound to a worker pod"):
            await leases.report("token", Report(step=1))


async def test_a_replica_that_can_neither_know_nor_ask_says_so() -> None:
    server = WatchServer(job_object(status={"allocation": RUN_1_OVER}))
    async with lagging(server) as leases:
        server.failing = True
        with pytest.raises(NotReadyError, match="cannot be asked"):
            await leases.report("token", Report(step=1))
