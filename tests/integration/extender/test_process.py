"""`python3 -m synergy_extender` as a process of its own."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import httpx
import pytest

import synergy_devcluster
from support.waiting import eventually
from synergy_devcluster.control_plane.pki import Authority

pytestmark = pytest.mark.integration


async def start(**settings: str) -> asyncio.subprocess.Process:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SYNERGY_")}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "synergy_extender", env={**environment, **settings}, stderr=asyncio.subprocess.PIPE
    )


async def test_bad_settings_are_named_and_end_it(tmp_path: Path) -> None:
    nameless = await start()
    _, said = await nameless.communicate()
    assert (nameless.returncode, "SYNERGY_POD_NAME is not set" in said.decode()) == (2, True)


async def test_it_serves_until_it_is_told_to_stop(
    devcluster: synergy_devcluster.Cluster, home: str, authority: Authority, tmp_path: Path
) -> None:
    settings = {
        "SYNERGY_POD_NAME": "extender-9",
        "SYNERGY_POD_NAMESPACE": home,
        "SYNERGY_HOST": "127.0.0.1",
        "SYNERGY_SCHEDULER_PORT": "0",
        "SYNERGY_API_PORT": "0",
        "SYNERGY_OPS_PORT": "0",
        "SYNERGY_KUBECONFIG": str(devcluster.kubeconfig),
    }
    without = await start(**settings, SYNERGY_TLS_DIR=str(tmp_path))
    _, said = await without.communicate()
    assert (without.returncode, json.loads(said.splitlines()[-1])["level"]) == (2, "ERROR")

    process = await start(**settings, SYNERGY_TLS_DIR=str(authority.certificate.parent))
    assert process.stderr is not None
    line = json.loads(await asyncio.wait_for(process.stderr.readline(), 30))
    ports = json.loads(line["message"].removeprefix("listening on ports "))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{ports[2]}") as ops:

        async def ready() -> bool:
            try:
                return (await ops.get("/readyz")).status_code == 200
            except httpx.TransportError:
                return False

        await eventually(ready, seconds=30, what="it to be ready")
        process.send_signal(signal.SIGTERM)

        async def leaving() -> bool:
            return (await ops.get("/readyz")).status_code == 503

        await eventually(leaving, seconds=2, what="it to be no longer ready", every=0.02)
    said = await asyncio.wait_for(process.stderr.read(), 20)
    assert await process.wait() == 0
    assert all(json.loads(line)["level"] == "INFO" for line in said.splitlines())
