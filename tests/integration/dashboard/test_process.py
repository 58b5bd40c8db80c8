"""The program as a process, beside a server that stands in for the API server."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from support.dashboard.stand_in_api import StandInApi, kubeconfig, serving
from support.extender.cluster import allocation, job_object, node_object, share
from synergy_kube.resources import NODES, TRAINING_JOBS
from synergy_service.servers import Endpoint, Servers

RUNS = {"phase": "Running", "allocation": allocation(share("n1")), "service": {"run": 1}}


@dataclass
class Running:
    """The dashboard's process and its ports."""

    process: asyncio.subprocess.Process
    url: str
    operations: str


def free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


@asynccontextmanager
async def running(api_url: str, folder: Path, **more: str) -> AsyncIterator[Running]:
    port, ops = free_ports()
    env: Mapping[str, str] = {
        **os.environ,
        "SYNERGY_KUBECONFIG": str(kubeconfig(api_url, folder / "kubeconfig")),
        "SYNERGY_DASHBOARD_DATABASE": f"sqlite:///{folder}/history.db",
        "SYNERGY_HOST": "127.0.0.1",
        "SYNERGY_DASHBOARD_PORT": str(port),
        "SYNERGY_OPS_PORT": str(ops),
        **more,
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "synergy_dashboard", env=env)
    try:
        yield Running(process, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{ops}")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def ready(http: httpx.AsyncClient, dashboard: Running) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                if (await http.get(f"{dashboard.operations}/readyz")).text == "ok":
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.05)


async def test_it_follows_the_cluster_records_it_and_writes_nothing_to_it(tmp_path: Path) -> None:
    api = StandInApi()
    api.put(NODES, node_object("n1"))
    api.put(TRAINING_JOBS, job_object("j", status={"queue": {"position": 1, "reason": "NoFreeGPU"}}))
    async with serving(api) as url, running(url, tmp_path) as dashboard, httpx.AsyncClient() as http:
        await ready(http, dashboard)
        headers = {"Authorization": "Bearer team"}
        async with http.stream("GET", f"{dashboard.url}/api/v1/stream", headers=headers, timeout=30) as stream:
            lines = stream.aiter_lines()
            while not (await anext(lines)).startswith("data:"):
                pass
            api.put(TRAINING_JOBS, job_object("j", status=RUNS))
            told = ""
            while "team/j" not in told:
                told = await anext(lines)
            assert json.loads(told.removeprefix("data: "))["queue"] == {"team/j": None}
        page = {"runs": []}
        async with asyncio.timeout(30):
            while not page["runs"]:
                answer = await http.get(f"{dashboard.url}/api/v1/jobs/team/j", headers=headers)
                page = answer.json()
                await asyncio.sleep(0.1)
        assert (page["phase"], page["runs"][0]["gpus"]) == ("Running", 1)
        future = await http.post(
            f"{dashboard.url}/api/v1/what-if", content=b'{"add_nodes": {"V100": 1}}', headers=headers, timeout=90
        )
        assert future.status_code == 200, future.text
        helped = await http.get(f"{dashboard.url}/api/v1/jobs/team/j/help", headers=headers, timeout=90)
        assert (helped.status_code, helped.json()["planned"]) == (200, False), helped.text
        assert (await http.get(f"{dashboard.url}/api/v1/jobs/team/nobody", headers=headers)).status_code == 404
        assert (await http.get(f"{dashboard.url}/api/v1/queue")).status_code == 401
        metrics = (await http.get(f"{dashboard.operations}/metrics")).text
        assert "kube_synergy_dashboard_jobs 1.0" in metrics
        for route, code in (("/jobs/{namespace}/{name}", 200), ("/jobs/{namespace}/{name}", 404), ("/queue", 401)):
            assert f'dashboard_requests_total{{code="{code}",route="/api/v1{route}"}}' in metrics, metrics
        assert 'request_seconds_count{route="/api/v1/what-if"} 1.0' in metrics
        assert 'request_seconds_count{route="/api/v1/stream"}' not in metrics, "a stream is open for hours"
        assert (await http.get(f"{dashboard.operations}/healthz")).text == "ok"
        dashboard.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(dashboard.process.wait(), 30) == 0
    writes = {path for method, path in api.methods if method != "GET"}
    assert writes == {
        "/apis/authentication.k8s.io/v1/tokenreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    }  # fmt: skip
    assert {method for method, _ in api.methods} == {"GET", "POST"}


@pytest.mark.parametrize(
    ("setting", "value"),
    [("SYNERGY_DASHBOARD_PORT", "web"), ("SYNERGY_TLS_DIR", "/nowhere"), ("SYNERGY_DASHBOARD_DATABASE", "mongo://x")],
)
async def test_what_cannot_be_used_ends_it_with_2(tmp_path: Path, setting: str, value: str) -> None:
    async with serving(StandInApi()) as url, running(url, tmp_path, **{setting: value}) as dashboard:
        assert await asyncio.wait_for(dashboard.process.wait(), 60) == 2


def test_a_port_that_is_taken_is_an_error_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            Servers("127.0.0.1", [Endpoint(None, taken.getsockname()[1])])
