"""The product's processes beside a devcluster: operator, extender replicas, and the kube-scheduler of the chart."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import click
import psutil
import yaml

from synergy_cli.bench.e2e import accounts
from synergy_cli.bench.e2e.polling import polled
from synergy_cli.bench.e2e.programs import Program, free_port
from synergy_cli.bench.e2e.version import Version
from synergy_devcluster import Cluster
from synergy_devcluster.control_plane.pki import Authority, KeyPair
from synergy_devcluster.network import NODE_ADDRESS
from synergy_devcluster.programs.versions import pinned
from synergy_kube import KubeClient
from synergy_kube.resources import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULING_POLICIES

SERVICE_ADDRESS = "10.96.0.77"
"""Of the Service in front of two replicas."""
_ACCOUNTS = ("operator", "extender", "scheduler")
_READY_SECONDS = 60.0


@dataclass(frozen=True)
class Replica:
    """One extender and the ports it listens on."""

    program: Program
    host: str
    verbs_port: int
    ops_port: int

    @property
    def address(self) -> str:
        """Where the scheduler asks: host:port."""
        return f"{self.host}:{self.verbs_port}"

    async def metrics(self) -> str:
        """Its metrics."""
        async with aiohttp.ClientSession() as session, session.get(self._ops("metrics")) as response:
            return await response.text()

    async def ready(self) -> None:
        """Wait until it answers that it is. Raises ClickException if it ends, or is not in time."""
        await _answers(self.program, self._ops("readyz"))

    def _ops(self, path: str) -> str:
        return f"http://{self.host}:{self.ops_port}/{path}"


@dataclass
class Product:
    """Makes the processes; `close` ends those that run. `namespace` is the product's own, `folder` is for logs, keys
    and configuration. The references are always those of this version."""

    cluster: Cluster
    kube: KubeClient
    namespace: str
    folder: Path
    version: Version = field(default_factory=Version)
    _programs: list[Program] = field(default_factory=list)
    _operator_port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.authority = Authority(self.folder / "tls")
        self.authority.server("tls", ("localhost", "127.0.0.1", NODE_ADDRESS, SERVICE_ADDRESS))
        self.client_certificate: KeyPair = self.authority.client("scheduler", "system:kube-scheduler")
        self._kubeconfigs = {name: accounts.kubeconfig(self.folder, name) for name in _ACCOUNTS}
        self.operator = self._program(
            "operator", [sys.executable, "-m", "synergy_operator"], self._operator_environment()
        )

    async def install(self, policy: Mapping[str, Any]) -> None:
        """The custom resources, the policy in force, and an account for each kind of process."""
        for file in self.version.definitions:
            definition = yaml.safe_load(file.read_text(encoding="utf-8"))
            await self.kube.apply(
                CUSTOM_RESOURCE_DEFINITIONS, definition["metadata"]["name"], definition, manager="kube-synergy-bench"
            )
        await polled(self._established, "the custom resources to be established", _READY_SECONDS)
        await self.kube.apply(SCHEDULING_POLICIES, "default", {"spec": dict(policy)}, manager="kube-synergy-bench")
        for name in _ACCOUNTS:
            await accounts.account(self.kube, self.cluster.kubeconfig, self.namespace, name, self.folder)

    async def start_operator(self) -> None:
        """Start it and wait until it answers its probe."""
        await self.operator.start()
        await _answers(self.operator, f"http://127.0.0.1:{self._operator_port}/healthz")

    async def start_extender(self, name: str) -> Replica:
        """Start a replica with the settings of the chart and wait until it is ready."""
        verbs, api, ops = (free_port(NODE_ADDRESS) for _ in range(3))
        environment = {
            "SYNERGY_TLS_DIR": str(self.folder / "tls"),
            "SYNERGY_POD_NAME": name,
            "SYNERGY_POD_NAMESPACE": self.namespace,
            "SYNERGY_HOST": NODE_ADDRESS,
            "SYNERGY_SCHEDULER_PORT": str(verbs),
            "SYNERGY_API_PORT": str(api),
            "SYNERGY_OPS_PORT": str(ops),
            "SYNERGY_KUBECONFIG": str(self._kubeconfigs["extender"]),
            **self.version.environment,
        }
        program = self._program(name, [sys.executable, "-m", "synergy_extender"], environment)
        replica = Replica(program, NODE_ADDRESS, verbs, ops)
        await program.start()
        await replica.ready()
        return replica

    @asynccontextmanager
    async def bare_extender(self, name: str) -> AsyncIterator[str]:
        """The reference while it runs: its address."""
        port = free_port(NODE_ADDRESS)
        place = [NODE_ADDRESS, str(port), str(self.folder / "tls"), str(self._kubeconfigs["extender"])]
        program = self._program(name, [sys.executable, "-m", "synergy_cli.bench.e2e.references.extender", *place])
        await program.start()
        try:
            await polled(lambda: _listens(program, NODE_ADDRESS, port), f"{name} to listen", _READY_SECONDS)
            yield f"{NODE_ADDRESS}:{port}"
        finally:
            await program.stop()

    async def start_bare_operator(self) -> Program:
        """Start the reference."""
        command = [sys.executable, "-m", "synergy_cli.bench.e2e.references.operator"]
        program = self._program("bare-operator", command, {"KUBECONFIG": str(self._kubeconfigs["operator"])})
        await program.start()
        return program

    async def start_writer(self, status: Path) -> Program:
        """Start the client that writes the status of this file into each new job."""
        command = [sys.executable, "-m", "synergy_cli.bench.e2e.references.writer", str(status)]
        program = self._program("writer", command, {"KUBECONFIG": str(self._kubeconfigs["operator"])})
        await program.start()
        return program

    def components(self) -> list[str]:
        """Names of the devcluster's components that run."""
        return [component.name for component in self.cluster.components() if component.process is not None]

    def cpu_seconds(self, component: str) -> float:
        """Processor seconds that a component of the devcluster has used."""
        process = self.cluster.component(component).process
        assert process is not None
        times = psutil.Process(process.pid).cpu_times()
        return float(times.user + times.system)

    async def start_scheduler(self, name: str, extender: str | None) -> Program:
        """Start a kube-scheduler with the chart's configuration, which asks the extender at `extender` (host:port), or
        with the same one without its extender."""
        configuration = self._scheduler_configuration()
        configuration["leaderElection"] = {"leaderElect": False}
        configuration["clientConnection"]["kubeconfig"] = str(self._kubeconfigs["scheduler"])
        if extender is None:
            configuration["extenders"] = []
        else:
            (asked,) = configuration["extenders"]
            asked["urlPrefix"] = f"https://{extender}"
            asked["tlsConfig"] = {
                "caFile": str(self.authority.certificate),
                "certFile": str(self.client_certificate.certificate),
                "keyFile": str(self.client_certificate.key),
            }
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(configuration), encoding="utf-8")
        command = [str(self.cluster.program("kube-scheduler")), f"--config={file}", "--secure-port=0"]
        program = self._program(name, command)
        await program.start()
        return program

    async def close(self) -> None:
        """End all processes, clients before servers, and remove their rights."""
        for program in reversed(self._programs):
            await program.stop()
        for name in _ACCOUNTS:
            await accounts.remove(self.kube, self.namespace, name)

    def check(self) -> None:
        """Raises ClickException if the operator has ended by itself."""
        self.operator.check()

    def _program(self, name: str, command: list[str], environment: Mapping[str, str] | None = None) -> Program:
        program = Program(name, command, self.folder / f"{name}.log", environment)
        self._programs.append(program)
        return program

    def _operator_environment(self) -> dict[str, str]:
        return {
            "KUBECONFIG": str(self._kubeconfigs["operator"]),
            "SYNERGY_PROFILER_IMAGE": "localhost/kube-synergy-profiler:dev",
            "SYNERGY_EXTENDER_URL": "https://localhost:9444",
            "SYNERGY_CA_FILE": str(self.folder / "tls" / "ca.crt"),
            "SYNERGY_HEALTH_PORT": str(self._operator_port),
            "SYNERGY_METRICS_PORT": "0",
            **self.version.environment,
        }

    def _scheduler_configuration(self) -> dict[str, Any]:
        """As the chart makes it."""
        chart = self.version.chart
        command = [str(self.cluster.program("helm")), "template", "kube-synergy", str(chart)]
        command += ["--values", str(chart / "values-devcluster.yaml"), "--show-only", "templates/scheduler.yaml"]
        command += ["--kube-version", pinned().kubernetes]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise click.ClickException(f"helm: {done.stderr.strip()}")
        made = next(item for item in yaml.safe_load_all(done.stdout) if item["kind"] == "ConfigMap")
        configuration: dict[str, Any] = yaml.safe_load(made["data"]["config.yaml"])
        return configuration

    async def _established(self) -> bool:
        definitions = (await self.kube.list(CUSTOM_RESOURCE_DEFINITIONS))["items"]
        return all(_is_established(definition) for definition in definitions)


async def _answers(program: Program, url: str) -> None:
    async with aiohttp.ClientSession() as session:

        async def yes() -> bool:
            program.check()
            try:
                async with session.get(url) as response:
                    return response.status == 200
            except aiohttp.ClientError:
                return False

        await polled(yes, f"{program.name} to be ready", _READY_SECONDS)


async def _listens(program: Program, host: str, port: int) -> bool:
    program.check()
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True


def _is_established(definition: Mapping[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def leader_of(lease: Mapping[str, Any]) -> str:
    """Name of the replica that holds the Lease; empty if no replica does."""
    holder = str((lease.get("spec") or {}).get("holderIdentity") or "")
    return holder.rpartition("_")[0]
