"""The three servers over real sockets with real certificates; the cluster behind them has not been read yet."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from support.extender.made_up_tokens import made_up
from support.extender.servers import NAMES, Parts, parts_alone, running, trusting
from synergy_devcluster.control_plane.pki import Authority
from synergy_extender.leases.verdict import MOST_SECONDS
from synergy_extender.verbs.bind import Binder
from synergy_extender.verbs.placements import ClusterPlacements
from synergy_extender.web.api_app import api_app
from synergy_extender.web.scheduler_app import SchedulerVerbs, scheduler_app
from synergy_job.environment import LeaseAccess
from synergy_job.lease.client import LeaseClient, LeaseError, Report
from synergy_service.limits import LimitBody
from synergy_service.operations import ops_app
from synergy_service.servers import KEEP_ALIVE_SECONDS, Endpoint, Servers
from synergy_service.tls import TlsFiles

VERBS = ("filter", "prioritize", "bind", "preempt")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("tls"))
    made.server("tls", NAMES)
    return made


@pytest.fixture
async def parts() -> AsyncIterator[Parts]:
    async with parts_alone() as made:
        yield made


async def test_a_worker_s_reports_take_one_connection_though_the_extender_answers_none_of_them_with_200(
    parts: Parts, authority: Authority, tmp_path: Path
) -> None:
    """The library against the real server: TLS, keep-alive, refusals."""
    token = tmp_path / "token"
    token.write_text(made_up())
    tls = TlsFiles(authority.certificate.parent).context(client_certificate=False)
    async with running(Endpoint(api_app(parts.desk), 0, tls)) as (port,):
        url = f"https://localhost:{port}"
        client = LeaseClient(LeaseAccess(url, str(token), authority.certificate.read_text()))
        opened = []
        kept = client._open
        client._open = lambda: opened.append(1) or kept()  # type: ignore[method-assign, func-returns-value]
        for _ in range(20):
            with pytest.raises(LeaseError, match="answered 503"):
                await asyncio.to_thread(client.send, Report(1, 0, 1.0))
        assert len(opened) == 1
        client.close()


def test_a_connection_is_kept_for_much_longer_than_workers_are_silent() -> None:
    assert KEEP_ALIVE_SECONDS >= 3 * MOST_SECONDS


async def test_no_body_brings_anything_but_200_with_a_reason(parts: Parts) -> None:
    bodies = ["", "null", "[]", '{"Pod": 7}', "{" * 1000, '{"PodName": 1}', "\xff"]
    bodies += ['{"Pod": ' + "[" * 5000, '{"Pod": {"metadata": {"name": "\xd6"}}}', '{"PodName": "\xd6"}']
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


@pytest.mark.parametrize("token", ["", "Bearer x"])
async def test_no_report_brings_a_server_error_though_it_cannot_be_repeated_in_json(parts: Parts, token: str) -> None:
    bodies = ['{"step": NaN}', '{"step": 1, "steps_per_second": 1e400}', '{"step": 1, "else": -Infinity}']
    bodies += ['"\\ud800"', '{"\\ud800": 1}', '{"step": 1, "gpu_uuids": ["\\ud800"]}', "\xff", '{"step": "\xff"}']
    headers = {"authorization": token} if token else {}
    async with (
        running(Endpoint(api_app(parts.desk), 0)) as (port,),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers) as client,
    ):
        for body in bodies:
            for kind in ({}, {"content-type": "application/json"}):
                answer = await client.post("/v1/lease", content=body.encode("latin-1"), headers=kind)
                assert answer.status_code in (400, 422), body
                assert answer.json()["detail"]


async def test_an_api_server_that_does_not_answer_is_named_to_the_user(parts: Parts) -> None:
    parts.verbs = SchedulerVerbs(
        ClusterPlacements(parts.client, parts.cache),
        Binder(ClusterPlacements(parts.client, parts.cache), parts.cache.assumed),
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


async def test_a_connection_that_brings_no_head_is_closed(parts: Parts) -> None:
    ops = ops_app(parts.metrics.registry, lambda: "")
    async with running(Endpoint(ops, 0, head_s=0.2)) as (port,):
        for sent in (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.close()


async def test_a_connection_may_rest_between_two_requests_but_not_within_the_second(parts: Parts) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    async with running(Endpoint(ops_app(parts.metrics.registry, lambda: ""), 0, head_s=0.2)) as (port,):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(request)
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\nok")
            await asyncio.sleep(0.4)
        writer.write(request[:9])
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()


async def test_a_head_without_end_is_refused(parts: Parts) -> None:
    async with running(Endpoint(ops_app(parts.metrics.registry, lambda: ""), 0)) as (port,):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 200_000)
        assert b"400" in await asyncio.wait_for(reader.readline(), 20)
        writer.close()


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
        for path in ("/v1/snapshot", "/v1/plan", "/v1/progress/team/j"):
            assert (await client.get(path)).status_code == 401
            unreviewed = await client.get(path, headers={"Authorization": "Bearer x"})
            assert (unreviewed.status_code, "cannot review" in unreviewed.json()["detail"]) == (503, True)
        described = (await client.get("/openapi.json")).json()
        assert set(described["paths"]) == {
            "/v1/lease",
            "/v1/snapshot",
            "/v1/plan",
            "/v1/progress/{namespace}/{name}",
        }
        assert (await client.get("/docs")).status_code == 200


async def test_probes_and_metrics(parts: Parts) -> None:
    missing = ["the cluster has not been read yet"]
    async with (
        running(Endpoint(ops_app(parts.metrics.registry, lambda: missing[0]), 0)) as (port,),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        assert (await client.get("/healthz")).status_code == 200
        early = await client.get("/readyz")
        assert (early.status_code, early.text) == (503, missing[0])
        missing[0] = ""
        assert (await client.get("/readyz")).status_code == 200
        parts.metrics.verbs.ledger_refusals.inc()
        assert "kube_synergy_ledger_refusals_total 1.0" in (await client.get("/metrics")).text


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_answers_do_not_wait_for_acknowledgements(parts: Parts, host: str) -> None:
    servers = Servers(host, [Endpoint(ops_app(parts.metrics.registry, lambda: ""), 0)])
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
    async with running(Endpoint(ops_app(parts.metrics.registry, lambda: ""), 0)) as (port,):
        with pytest.raises(OSError, match="in use"):
            Servers("127.0.0.1", [Endpoint(ops_app(parts.metrics.registry, lambda: ""), port)])
