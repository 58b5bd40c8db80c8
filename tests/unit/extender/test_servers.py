"""The three servers over real sockets with real certificates; the cluster behind them has not been read yet."""

import asyncio
import json
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest

from support.waiting import eventually
from synergy_devcluster.pki import Authority, KeyPair
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.fresh import FreshLook
from synergy_extender.leases.desk import LeaseDesk
from synergy_extender.leases.progress_writer import ProgressWriter
from synergy_extender.leases.tokens import Reviewer
from synergy_extender.metrics import Metrics
from synergy_extender.rounds import Rounds
from synergy_extender.verbs.bind import Binder
from synergy_extender.verbs.placements import ClusterPlacements
from synergy_extender.web.api_app import ApiDesk, api_app
from synergy_extender.web.limits import LimitBody
from synergy_extender.web.ops_app import ops_app
from synergy_extender.web.scheduler_app import NOT_SYNCED, SchedulerVerbs, scheduler_app
from synergy_extender.web.servers import Endpoint, Servers
from synergy_extender.web.tls import TlsFiles, follow
from synergy_kube import KubeClient

VERBS = ("filter", "prioritize", "bind", "preempt")
NAMES = ("localhost", "127.0.0.1")
FILTER = json.dumps({"Pod": {"metadata": {"name": "p", "namespace": "n", "uid": "u"}}, "NodeNames": ["n1"]})


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("tls"))
    made.server("tls", NAMES)
    return made


@asynccontextmanager
async def running(*endpoints: Endpoint) -> AsyncIterator[list[int]]:
    servers = Servers("127.0.0.1", endpoints)
    task = asyncio.create_task(servers.run())
    try:
        yield servers.ports
    finally:
        servers.stop()
        await task


def trusting(authority: Authority, client: KeyPair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if client is not None:
        context.load_cert_chain(client.certificate, client.key)
    return context


class Parts:
    """All that answers, over an API server that is not there."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self.metrics = Metrics()
        self.cache = ClusterCache(client, lambda: None)
        placements = ClusterPlacements(client, self.cache)
        binder = Binder(placements, self.cache.assumed, time.time)
        self.verbs = SchedulerVerbs(placements, binder, self.metrics, lambda: self.cache.synced)
        reviewer = Reviewer(client, time.monotonic)
        writer = ProgressWriter(client, self.cache.observe)
        fresh = FreshLook(client, self.cache)
        rounds = Rounds(20)
        leases = LeaseDesk(self.cache, fresh, reviewer, writer, self.metrics, rounds=lambda: rounds, clock=time.time)
        self.desk = ApiDesk(
            self.cache,
            leases,
            reviewer,
            self.metrics,
            rounds=lambda: Rounds(20),
            last_plan=lambda: None,
            leader=lambda: "extender-1",
            clock=time.time,
        )


class NoConfiguration:
    async def auth_settings(self) -> dict[str, Any]:
        return {}


@pytest.fixture
async def parts() -> AsyncIterator[Parts]:
    async with aiohttp.ClientSession() as session:
        yield Parts(KubeClient(session, "http://127.0.0.1:1", NoConfiguration()))


async def test_the_verbs_are_for_clients_with_a_certificate_of_the_authority_alone(
    parts: Parts, authority: Authority, tmp_path: Path
) -> None:
    tls = TlsFiles(authority.certificate.parent).context(client_certificate=True)
    stranger = Authority(tmp_path, "somebody else").client("stranger", "system:kube-scheduler")
    async with running(Endpoint(scheduler_app(parts.verbs, parts.metrics), 0, tls)) as (port,):
        url = f"https://localhost:{port}/filter"
        async with httpx.AsyncClient(
            verify=trusting(authority, authority.client("scheduler", "system:kube-scheduler"))
        ) as known:
            answer = await known.post(url, content=FILTER)
            assert (answer.status_code, answer.json()["Error"]) == (200, NOT_SYNCED)
        for context in (
            trusting(authority),
            trusting(authority, stranger),
            trusting(authority, authority.server("x", NAMES)),
        ):
            async with httpx.AsyncClient(verify=context) as unknown:
                with pytest.raises(httpx.TransportError):
                    await unknown.post(url, content=FILTER)


async def test_no_body_brings_anything_but_200_with_a_reason(parts: Parts) -> None:
    bodies = ["", "null", "[]", '{"Pod": 7}', "{" * 1000, '{"PodName": 1}', "\xff"]
    app = scheduler_app(parts.verbs, parts.metrics)
    async with running(Endpoint(app, 0)) as (port,), httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        for body in bodies:
            content = body.encode("latin-1")
            answers = {verb: await client.post(f"/{verb}", content=content) for verb in VERBS}
            assert {answer.status_code for answer in answers.values()} == {200}
            assert answers["filter"].json()["Error"]
            assert answers["bind"].json()["Error"]
            assert answers["prioritize"].json() == []
            assert answers["preempt"].json() == {"NodeNameToMetaVictims": {}}


async def test_an_api_server_that_does_not_answer_is_named_to_the_user(parts: Parts) -> None:
    parts.verbs = SchedulerVerbs(
        ClusterPlacements(parts.client, parts.cache),
        Binder(ClusterPlacements(parts.client, parts.cache), parts.cache.assumed, time.time),
        parts.metrics,
        lambda: True,
    )
    labels = {
        "kube-synergy.dev/job": "j",
        "kube-synergy.dev/run": "1",
        "kube-synergy.dev/rank": "0",
        "kube-synergy.dev/role": "worker",
    }
    pod = {"metadata": {"name": "j-1-0", "namespace": "n", "uid": "u", "labels": labels}}
    bind = {"PodName": "j-1-0", "PodNamespace": "n", "PodUID": "u", "Node": "n1"}
    async with (
        running(Endpoint(scheduler_app(parts.verbs, parts.metrics), 0)) as (port,),
        httpx.AsyncClient() as client,
    ):
        url = f"http://127.0.0.1:{port}"
        filtered = await client.post(f"{url}/filter", json={"Pod": pod, "NodeNames": ["n1"]})
        bound = await client.post(f"{url}/bind", json=bind)
        scored = await client.post(f"{url}/prioritize", json={"Pod": pod, "NodeNames": ["n1"]})
    assert "the API server did not answer" in filtered.json()["Error"]
    assert "the API server cannot be reached" in bound.json()["Error"]
    assert scored.json() == []


async def test_a_request_that_is_too_large_or_too_slow_is_refused(parts: Parts) -> None:
    small = LimitBody(scheduler_app(parts.verbs, parts.metrics), most=1000, seconds=0.2)
    async with running(Endpoint(small, 0)) as (port,):
        async with httpx.AsyncClient() as client:
            answer = await client.post(f"http://127.0.0.1:{port}/filter", content="x" * 1001)
            assert (answer.status_code, answer.text) == (413, "the request is larger than 1000 bytes")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nxx")
        assert b"408" in await reader.readline()
        writer.close()
        await writer.wait_closed()


async def test_a_report_needs_a_token_a_right_body_and_a_replica_that_is_ready(
    parts: Parts, authority: Authority
) -> None:
    tls = TlsFiles(authority.certificate.parent).context(client_certificate=False)
    async with (
        running(Endpoint(api_app(parts.desk), 0, tls)) as (port,),
        httpx.AsyncClient(verify=trusting(authority), base_url=f"https://localhost:{port}") as client,
    ):
        bearer = {"Authorization": "Bearer some-token"}
        nameless = await client.post("/v1/lease", json={"step": 1})
        basic = await client.post("/v1/lease", json={"step": 1}, headers={"Authorization": "Basic eDp5"})
        wrong = await client.post("/v1/lease", json={"step": 1, "job": "other"}, headers=bearer)
        early = await client.post("/v1/lease", json={"step": 1}, headers=bearer)
        assert [a.status_code for a in (nameless, basic, wrong, early)] == [401, 401, 422, 503]
        assert nameless.headers["WWW-Authenticate"] == "Bearer"
        assert "has not read the cluster" in early.json()["detail"]


async def test_people_need_a_token_and_the_api_server_to_vouch_for_it(parts: Parts) -> None:
    async with (
        running(Endpoint(api_app(parts.desk), 0)) as (port,),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        for path in ("/v1/snapshot", "/v1/plan"):
            assert (await client.get(path)).status_code == 401
            unreviewed = await client.get(path, headers={"Authorization": "Bearer x"})
            assert (unreviewed.status_code, "cannot review" in unreviewed.json()["detail"]) == (503, True)
        described = (await client.get("/openapi.json")).json()
        assert set(described["paths"]) == {"/v1/lease", "/v1/snapshot", "/v1/plan"}
        assert (await client.get("/docs")).status_code == 200


async def test_probes_and_metrics(parts: Parts) -> None:
    missing = ["the cluster has not been read yet"]
    async with (
        running(Endpoint(ops_app(parts.metrics, lambda: missing[0]), 0)) as (port,),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        assert (await client.get("/healthz")).status_code == 200
        early = await client.get("/readyz")
        assert (early.status_code, early.text) == (503, missing[0])
        missing[0] = ""
        assert (await client.get("/readyz")).status_code == 200
        parts.metrics.ledger_refusals.inc()
        assert "kube_synergy_ledger_refusals_total 1.0" in (await client.get("/metrics")).text


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_answers_do_not_wait_for_acknowledgements(parts: Parts, host: str) -> None:
    servers = Servers(host, [Endpoint(ops_app(parts.metrics, lambda: ""), 0)])
    serving = asyncio.create_task(servers.run())
    reader, writer = await asyncio.open_connection(host, servers.ports[0])
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200" in await reader.readline()
    (connection,) = servers._servers[0].server_state.connections
    accepted = connection.transport.get_extra_info("socket")
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    writer.close()
    await writer.wait_closed()
    servers.stop()
    await serving


async def test_a_port_that_is_taken_is_an_error_at_once(parts: Parts) -> None:
    async with running(Endpoint(ops_app(parts.metrics, lambda: ""), 0)) as (port,):
        with pytest.raises(OSError, match="in use"):
            Servers("127.0.0.1", [Endpoint(ops_app(parts.metrics, lambda: ""), port)])


async def test_a_new_certificate_is_used_for_new_connections_without_a_restart(parts: Parts, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.server("tls", NAMES)
    files = TlsFiles(tmp_path)
    context = files.context(client_certificate=False)
    async with running(Endpoint(ops_app(parts.metrics, lambda: ""), 0, context)) as (port,):
        following = asyncio.create_task(follow(files, [context], every_s=0.01))
        first = await served(port)
        (tmp_path / "tls.key").write_text("half written")
        await asyncio.sleep(0.05)
        assert await served(port) == first
        authority.server("tls", NAMES)
        os.utime(tmp_path / "tls.crt", ns=(0, 1))

        async def renewed() -> bool:
            return await served(port) != first

        await eventually(renewed, seconds=10, what="the new certificate", every=0.01)
        following.cancel()


async def served(port: int) -> bytes:
    """The certificate that a new connection sees."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return certificate


def test_missing_certificate_files_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        TlsFiles(tmp_path).context(client_certificate=True)
