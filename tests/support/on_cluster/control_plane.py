"""A second control plane beside the devcluster: etcd and an API server on ports of their own, and no node."""

import asyncio
import shutil
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

import synergy_devcluster
from support.api_server.crds import apply_crds
from support.waiting import eventually
from synergy_devcluster.control_plane import command_lines
from synergy_devcluster.control_plane.kubeconfigs import API_URL
from synergy_devcluster.node import kwok
from synergy_devcluster.options import FakeNodes
from synergy_kube import ApiError, KubeClient, Resource
from synergy_kube.resources import NAMESPACES, NODES

_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)


@dataclass(frozen=True)
class ControlPlane:
    """A running one, its administrator's kubeconfig and client."""

    kubeconfig: Path
    kube: KubeClient
    server: asyncio.subprocess.Process

    def pause(self) -> None:
        """The API server answers nothing any more."""
        self.server.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """It answers again, with the same data."""
        self.server.send_signal(signal.SIGCONT)

    async def add_namespace(self, name: str) -> None:
        """A namespace in which pods can be made: without controllers nobody else makes their account."""
        await self.kube.create(NAMESPACES, {"metadata": {"name": name}})
        await self.kube.create(_ACCOUNTS, {"metadata": {"name": "default"}}, name)

    async def add_node(self, group: FakeNodes) -> None:
        """Nodes that are ready and open to pods. No kubelet starts these."""
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
        for node in kwok.nodes(group):
            name = node["metadata"]["name"]
            await self.kube.create(NODES, node)
            await self.kube.merge_patch(NODES, name, {"spec": {"taints": None}})
            status = {"status": {**node["status"], "conditions": [ready]}}
            await self.kube.merge_patch(NODES, name, status, subresource="status")


@asynccontextmanager
async def control_plane(
    programs: synergy_devcluster.Cluster, repository: Path, folder: Path
) -> AsyncIterator[ControlPlane]:
    """Run one with the custom resource definitions of `crds/`."""
    paths = replace(programs.paths, state=folder, run=folder / "run")
    for made in (paths.logs, paths.config):
        made.mkdir(parents=True)
    etcd_port, peer_port, port = _free_ports(3)
    identities = command_lines.make_identities(paths, programs.real_nodes())
    etcd = _changed(
        command_lines.etcd(str(programs.program("etcd")), paths),
        listen_client_urls=f"http://127.0.0.1:{etcd_port}",
        advertise_client_urls=f"http://127.0.0.1:{etcd_port}",
        listen_peer_urls=f"http://127.0.0.1:{peer_port}",
    )
    server = _changed(
        command_lines.api_server(str(programs.program("kube-apiserver")), identities, paths),
        etcd_servers=f"http://127.0.0.1:{etcd_port}",
        bind_address="127.0.0.1",
        advertise_address="127.0.0.1",
        secure_port=str(port),
    )
    server.append("--endpoint-reconciler-type=none")  # its address is none for others
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(identities.kubeconfigs["admin"].read_text().replace(API_URL, f"https://127.0.0.1:{port}"))
    async with (
        _running(etcd, folder / "etcd.log"),
        _running(server, folder / "kube-apiserver.log") as process,
        await KubeClient.connect(kubeconfig=str(kubeconfig)) as kube,
    ):
        await eventually(lambda: _answers(kube), seconds=120, what=f"the API server of {folder}")
        await apply_crds(kube, repository)
        yield ControlPlane(kubeconfig, kube, process)
    shutil.rmtree(folder / "etcd", ignore_errors=True)


def rules_of(rendered: str, role: str) -> list[Any]:
    """The rules of a ClusterRole of a rendered chart, and of a Role of that name."""
    objects = [item for item in yaml.safe_load_all(rendered) if item]
    found = [item["rules"] for item in objects if item["kind"].endswith("Role") and item["metadata"]["name"] == role]
    assert found, f"the chart has no role {role}"
    return [rule for rules in found for rule in rules]


async def _answers(kube: KubeClient) -> bool:
    try:
        await kube.get_path("/api/v1/namespaces/kube-system")
    except (ApiError, OSError, TimeoutError):
        return False
    return True


@asynccontextmanager
async def _running(argv: Sequence[str], log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *argv, stdout=file, stderr=file, stdin=asyncio.subprocess.DEVNULL
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            await process.wait()


def _changed(argv: Sequence[str], **options: str) -> list[str]:
    """The command line with other values of its options."""
    names = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    kept = [word for word in argv if word.partition("=")[0] not in names]
    return [*kept, *(f"{name}={value}" for name, value in names.items())]


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
