"""Reports that reach a replica whose watches are behind what the worker was made from, and reports of other runs and
jobs than the one at hand."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import allocation, job_object, key, pod_object, share, worker_labels
from support.waiting import eventually
from synergy_api.parts.progress import Progress
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.fresh import FreshLook
from synergy_extender.cluster.views import JobView
from synergy_extender.leases.progress_writer import ProgressWriter
from synergy_extender.leases.reports import Report, Reported
from synergy_extender.leases.service import LeaseService, NotReadyError, NoWorkerError
from synergy_extender.leases.tokens import Identity, Reviewer
from synergy_extender.metrics import Metrics
from synergy_extender.rounds import Rounds
from synergy_kube import Conflict

JOB = "/apis/kube-synergy.dev/v1alpha1/namespaces/team/trainingjobs/j"
POD, POD0 = "/api/v1/namespaces/team/pods/j-2-1", "/api/v1/namespaces/team/pods/j-2-0"
RUN_1_OVER = allocation(run=1, state="Released", until=None)
HELD = allocation(share("n1"), run=2, until=time.time() + 1000)
GRANTED = job_object(status={"allocation": HELD, "service": {"run": 2, "endedRun": 1}}, resourceVersion="10")
REVOKED = job_object(status={"allocation": {**HELD, "state": "Revoked"}, "service": {"run": 2, "endedRun": 1}})


class KnownToken(Reviewer):
    """The API server's word on the one token there is."""

    async def identify(self, token: str, audience: str | None, **_: object) -> Identity | None:
        return Identity({}, "system:serviceaccount:team:default", "team", "j-2-1", "uid-j-2-1")


class Written(ProgressWriter):
    """Keeps what it is to write."""

    steps: list[int]

    async def apply(self, job: JobView, progress: Progress) -> None:
        self.steps.append(progress.steps or 0)


class Refused(Written):
    """Another has written to the job since it was read: the first write is refused."""

    refused = False

    async def apply(self, job: JobView, progress: Progress) -> None:
        if not self.refused:
            self.refused = True
            raise Conflict(409, "Conflict", "changed")
        await super().apply(job, progress)


class LeadingToken(Reviewer):
    """The API server's word on the token of rank 0."""

    async def identify(self, token: str, audience: str | None, **_: object) -> Identity | None:
        return Identity({}, "system:serviceaccount:team:default", "team", "j-2-0", "uid-j-2-0")


@asynccontextmanager
async def leading(
    server: WatchServer, *, made_for: str = "uid-j", writes: type[Written] = Written
) -> AsyncIterator[tuple[LeaseService, Written, ClusterCache]]:
    """A replica to which rank 0 of run 2 reports, the worker of the job with that uid."""
    server.now[POD0] = pod_object("j-2-0", labels=worker_labels("j", 2, 0), node="n1", gpus=1, made_for=made_for)
    async with following(server) as (client, cache):
        reviewer, writer = LeadingToken(client, time.monotonic), writes(client, cache.observe)
        writer.steps = []
        fresh = FreshLook(client, cache)
        leases = LeaseService(cache, fresh, reviewer, writer, Metrics(), rounds=lambda: Rounds(20), clock=time.time)
        yield leases, writer, cache


async def test_that_a_job_is_done_is_written_although_it_was_told_to_leave_before() -> None:
    """And each only once: whoever says so again and again waits for the budget as others do."""
    async with leading(WatchServer(REVOKED)) as (leases, writer, _):
        for step, done in ((74, False), (75, False), (150, True), (75, False), (150, True)):
            assert (await leases.report("token", Report(step=step, done=done))).verdict == "yield"
        await eventually(_once(lambda: len(writer.steps) == 2), seconds=10, what="both last reports to be written")
        assert writer.steps == [74, 150]


@pytest.mark.parametrize("now", [job_object(), GRANTED, REVOKED], ids=["no run yet", "granted", "revoked"])
async def test_a_worker_of_a_deleted_job_leaves_and_writes_nothing_into_the_one_that_took_its_name(
    now: dict[str, Any],
) -> None:
    server = WatchServer(now)
    server.now[JOB] = now
    async with leading(server, made_for="uid-earlier") as (leases, writer, _):
        answer = await leases.report("token", Report(step=900, done=True))
        assert (answer.verdict, answer.yield_in_s, answer.lease_remaining_s) == ("yield", 0.0, 0.0)
        assert (len(leases.progress), leases.progress.newest(key("j"), "uid-j")) == (0, None)
        await asyncio.sleep(0.05)
        assert writer.steps == []


async def test_a_worker_is_not_sent_away_while_the_watch_shows_the_job_that_had_the_name_before() -> None:
    held = allocation(share("n1"), run=7, until=time.time() + 20)
    server = WatchServer(job_object(uid="uid-earlier", status={"allocation": held}))
    server.now[JOB] = GRANTED
    async with leading(server) as (leases, _, _):
        assert (await leases.report("token", Report(step=1))).verdict == "continue"


LATER = {
    "its own job": (job_object(status={"service": {"run": 2, "endedRun": 2}}, resourceVersion="20"), [74]),
    "a newer run": (job_object(status={"progress": {"run": 3, "steps": 9}}, resourceVersion="20"), []),
    "another job": (job_object(uid="uid-later", resourceVersion="20"), []),
}


@pytest.mark.parametrize(("later", "written"), LATER.values(), ids=LATER)
async def test_a_report_that_waited_is_written_only_into_its_own_job_and_over_no_newer_run(
    later: dict[str, Any], written: list[int]
) -> None:
    async with leading(WatchServer(GRANTED, job_object("k"))) as (leases, writer, cache):
        leases.progress.offer(key("k"), Reported("uid-k", 1, Report(step=7)))
        assert (await leases.report("token", Report(step=74))).verdict == "continue"
        cache.observe(later)
        task = asyncio.create_task(leases.progress.run())
        await eventually(_once(lambda: 7 in writer.steps), seconds=10, what="the report that waits behind it")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert writer.steps == [*written, 7]


@pytest.mark.parametrize(("later", "written"), LATER.values(), ids=LATER)
async def test_a_last_report_that_was_refused_is_written_only_into_its_own_job_and_over_no_newer_run(
    later: dict[str, Any], written: list[int]
) -> None:
    server = WatchServer(REVOKED)
    server.now[JOB] = later
    async with leading(server, writes=Refused) as (leases, writer, _):
        assert (await leases.report("token", Report(step=74))).verdict == "yield"
        await eventually(_once(lambda: not leases._last_writes), seconds=10, what="the end of the write")
        assert (server.asked[-1], writer.steps) == (JOB, written)


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
