"""Who may call the scheduler verbs, and certificates that change under way."""

import asyncio
import gc
import json
import os
import ssl
import warnings
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from support.extender.servers import NAMES, Parts, parts_alone, running, trusting
from support.waiting import eventually
from synergy_devcluster.control_plane.pki import Authority
from synergy_extender.config import SCHEDULER_NAMES
from synergy_extender.web.scheduler_app import NOT_SYNCED, scheduler_app
from synergy_service.operations import ops_app
from synergy_service.protocol import certificate_names
from synergy_service.servers import Endpoint
from synergy_service.tls import ServerTls, TlsFiles, follow

FILTER = json.dumps({"Pod": {"metadata": {"name": "p", "namespace": "n", "uid": "u"}}, "NodeNames": ["n1"]})
SCHEDULER = "kube-synergy-scheduler"


@pytest.fixture
async def parts() -> AsyncIterator[Parts]:
    async with parts_alone() as made:
        yield made


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path)
    made.server("tls", NAMES)
    return made


def verbs(parts: Parts, tls: ServerTls) -> Endpoint:
    return Endpoint(scheduler_app(parts.verbs, parts.metrics), 0, tls.context, SCHEDULER_NAMES)


async def test_the_verbs_are_for_clients_with_a_certificate_of_the_authority_alone(
    parts: Parts, authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "other", "somebody else").client("stranger", SCHEDULER)
    async with running(verbs(parts, ServerTls(TlsFiles(tmp_path), client_certificate=True))) as (port,):
        url = f"https://localhost:{port}/filter"
        async with httpx.AsyncClient(verify=trusting(authority, authority.client("scheduler", SCHEDULER))) as known:
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


async def test_a_certificate_of_the_authority_with_another_name_is_told_so(
    parts: Parts, authority: Authority, tmp_path: Path
) -> None:
    async with running(verbs(parts, ServerTls(TlsFiles(tmp_path), client_certificate=True))) as (port,):
        for name, status in ((SCHEDULER, 200), ("system:kube-scheduler", 200), ("kubelet", 403)):
            context = trusting(authority, authority.client(name, name))
            async with httpx.AsyncClient(verify=context) as client:
                for verb in ("filter", "prioritize", "bind", "preempt"):
                    answer = await client.post(f"https://localhost:{port}/{verb}", content=FILTER)
                    assert answer.status_code == status, name
        allowed = "'kube-synergy-scheduler' or 'system:kube-scheduler'"
        assert answer.text == f"the client certificate is of 'kubelet'; only {allowed} may call here"


def test_names_of_a_certificate_are_its_common_name_and_its_dns_names() -> None:
    certificate = {
        "subject": ((("organizationName", "o"),), (("commonName", "c"),)),
        "subjectAltName": (("DNS", "d"), ("IP Address", "1.2.3.4")),
    }
    assert certificate_names(certificate) == {"c", "d"}
    assert certificate_names({}) == certificate_names(None) == set()


async def test_certificates_of_a_new_authority_replace_the_old_ones_while_the_verbs_are_called(
    parts: Parts, tmp_path: Path
) -> None:
    """In the steps in which the chart's Job does it: both authorities are trusted, then certificates change, then the
    old authority goes. Each request here makes a connection of its own."""
    folder, old, new = tmp_path / "served", Authority(tmp_path / "old", "old"), Authority(tmp_path / "new", "new")
    folder.mkdir()
    both = old.certificate.read_bytes() + new.certificate.read_bytes()
    put(folder, old, both)
    tls = ServerTls(TlsFiles(folder), client_certificate=True)
    clients = {"shown": trusting(old, old.client("scheduler", SCHEDULER))}
    clients["shown"].load_verify_locations(cadata=both.decode())
    answered: list[int] = []
    async with running(verbs(parts, tls)) as (port,):
        url = f"https://localhost:{port}/filter"

        async def call() -> None:
            while True:
                async with httpx.AsyncClient(verify=clients["shown"]) as client:
                    answered.append((await client.post(url, content=FILTER)).status_code)

        calling = asyncio.create_task(call())
        following = asyncio.create_task(follow(TlsFiles(folder), [tls], every_s=0.01))
        first = await served(port)

        async def more(count: int = len(answered)) -> bool:
            return len(answered) > count + 3 or calling.done()

        await eventually(more, seconds=20, what="some calls", every=0.01)
        put(folder, new, both)

        async def renewed() -> bool:
            return await served(port) != first

        await eventually(renewed, seconds=20, what="the new certificate", every=0.01)
        outdated = clients["shown"]
        changed = trusting(new, new.client("scheduler", SCHEDULER))
        changed.load_verify_locations(cadata=both.decode())
        clients["shown"] = changed
        count = len(answered)

        async def with_the_new_one() -> bool:
            return len(answered) > count + 3 or calling.done()

        await eventually(with_the_new_one, seconds=20, what="calls with the new certificate", every=0.01)
        put(folder, new, new.certificate.read_bytes())

        async def old_is_refused() -> bool:
            try:
                async with httpx.AsyncClient(verify=outdated) as client:
                    await client.post(url, content=FILTER)
            except httpx.TransportError:
                return True
            return False

        await eventually(old_is_refused, seconds=20, what="the old authority to be trusted no more", every=0.05)
        calling.cancel()
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    assert set(answered) == {200}


async def test_half_written_files_are_left_alone(parts: Parts, authority: Authority, tmp_path: Path) -> None:
    tls = ServerTls(TlsFiles(tmp_path), client_certificate=False)
    async with running(Endpoint(ops_app(parts.metrics.registry, lambda: ""), 0, tls.context)) as (port,):
        following = asyncio.create_task(follow(TlsFiles(tmp_path), [tls], every_s=0.01))
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


@pytest_asyncio.fixture(autouse=True)
async def failed_handshakes_are_collected() -> AsyncIterator[None]:
    """asyncio leaves the socket of a TLS handshake that failed to the garbage collector: here, not in a later test."""
    yield
    await asyncio.sleep(0)  # what is closing is closed first
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


async def served(port: int) -> bytes:
    """The certificate that a new connection sees, which names no server."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return certificate


def put(folder: Path, authority: Authority, trusted: bytes) -> None:
    """Write a folder as the kubelet shows a Secret."""
    pair = authority.server("tls", NAMES)
    (folder / "tls.crt").write_bytes(pair.certificate.read_bytes())
    (folder / "tls.key").write_bytes(pair.key.read_bytes())
    (folder / "ca.crt").write_bytes(trusted)


def test_missing_certificate_files_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        ServerTls(TlsFiles(tmp_path), client_certificate=True)
