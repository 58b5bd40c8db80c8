"""The tests' own operator process leaves nothing behind, however its start goes."""

import asyncio
import os
from pathlib import Path

import pytest

from support.operator.stage import OperatorProcess

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
"""


async def test_an_operator_that_does_not_come_up_is_killed(tmp_path: Path) -> None:
    """Its API server takes connections and never answers."""
    server = await asyncio.start_server(lambda reader, writer: asyncio.Event().wait(), "127.0.0.1", 0)
    async with server:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(port=server.sockets[0].getsockname()[1]))
        operator = OperatorProcess(kubeconfig, tmp_path)
        with pytest.raises(AssertionError, match="to answer its probe"):
            await operator.start(seconds=0.5)
    assert operator._process is not None
    with pytest.raises(ProcessLookupError):
        os.kill(operator._process.pid, 0)


async def test_an_operator_that_ends_at_once_is_not_waited_for(tmp_path: Path) -> None:
    operator = OperatorProcess(tmp_path / "kubeconfig", tmp_path, SYNERGY_PROFILER_IMAGE="")
    with pytest.raises(AssertionError, match="has ended with 2; its log"):
        await operator.start(seconds=280)
