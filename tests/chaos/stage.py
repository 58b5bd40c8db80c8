"""Everything under test, running: operator, two replicas of the extender and a kube-scheduler, each as a process that
reaches the API server, and each other, through links that can be broken."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from chaos.faults.api_server import store_link
from chaos.faults.clock import WallClock
from chaos.faults.link import Link
from chaos.faults.refusals import Refusals, user_of
from chaos.programs import Program
from chaos.service import Readiness
from support.api_server.crds import apply_crds
from support.extender.world import scheduler_configuration
from support.job.process import free_port
from support.on_cluster.service_account import kubeconfig_of
from support.on_cluster.tenants import all_allowed
from support.programs import run as run_program
from support.waiting import eventually
from synergy_devcluster import Cluster
from synergy_devcluster.control_plane.pki import Authority
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import LEASES, NAMESPACES, SCHEDULING_POLICIES

API_SERVER_PORT = 6443
POLICY = {"policy": "las", "mechanism": "tune", "roundSeconds": 10}
EXTENDERS = ("extender-a", "extender-b")
_ROOMS = {"operator": "operator", "scheduler": "scheduler", **dict.fromkeys(EXTENDERS, "extender")}
"""Whose rights each program has."""
_HOME = "chaos-home"
"""The namespace that the extender calls its own."""
FENCE_SECONDS = 40
"""Longer than all but a cut-off node is without an answer: a worker that hears nobody for 28 s saves and leaves."""
SHORT_MARGIN = (
    "import runpy, synergy_operator.run.fencing as fencing; fencing.MARGIN_SECONDS = 5.0; "
    "runpy.run_module('synergy_operator', run_name='__main__')"
)
"""The operator, for which a worker that the extender still answers is gone sooner: on a cut-off node none is."""


@dataclass(frozen=True)
class Ports:
    """Where a replica of the extender listens."""

    verbs: int
    api: int
    ops: int


@dataclass(frozen=True)
class Stage:
    """What can be broken, by name. `namespace` is that of the jobs, `folder` an empty one for logs and keys.

    `users` are the accounts of operator and extender, of which `refusals` can refuse writes; `clocks` those of the
    programs whose clocks can be set.
    """

    cluster: Cluster
    kube: KubeClient
    folder: Path
    programs: Mapping[str, Program]
    links: Mapping[str, Link]
    operator: Readiness
    refusals: Refusals
    users: Mapping[str, str]
    clocks: Mapping[str, WallClock]
    namespace: str = ""

    @asynccontextmanager
    async def act(self, namespace: str) -> AsyncIterator["Stage"]:
        """The same for jobs in a namespace of their own."""
        async with (
            _namespace(self.kube, namespace),
            _namespace(self.kube, elsewhere(namespace)),
            all_allowed(self.kube, namespace),
        ):
            yield replace(self, namespace=namespace)

    async def leader(self) -> str:
        """The replica that leads; the first where nobody does, or nobody can say."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2):
                lease = await self.kube.get(LEASES, "kube-synergy-extender", _HOME)
                holder = str((lease.get("spec") or {}).get("holderIdentity") or "")
                return next((name for name in EXTENDERS if holder.startswith(name)), EXTENDERS[0])
        return EXTENDERS[0]


def elsewhere(namespace: str) -> str:
    """The namespace beside it for jobs that are not meant to run."""
    return f"{namespace}-elsewhere"


@asynccontextmanager
async def stage(cluster: Cluster, kube: KubeClient, repository: Path, folder: Path) -> AsyncIterator[Stage]:
    """Start all of it, and wait until it works."""
    async with AsyncExitStack() as stack:
        await apply_crds(kube, repository)
        await stack.enter_async_context(_policy(kube))
        await stack.enter_async_context(_namespace(kube, _HOME))
        store = await stack.enter_async_context(store_link(cluster, kube))
        links = {store.name: store}
        for name in _ROOMS:
            link = Link(f"{name}-api", lambda: [API_SERVER_PORT])
            links[link.name] = await stack.enter_async_context(link)
        ports = {name: Ports(free_port(), free_port(), free_port()) for name in EXTENDERS}
        readiness = Readiness({name: f"http://127.0.0.1:{those.ops}/readyz" for name, those in ports.items()})
        health = free_port()
        operator = Readiness({"operator": f"http://127.0.0.1:{health}/healthz"}, failures=1)
        services = (
            Link("scheduler-extender", lambda: [ports[name].verbs for name in readiness.ready()]),
            Link("workers-extender", lambda: [ports[name].api for name in readiness.ready()]),
        )
        for link in services:
            links[link.name] = await stack.enter_async_context(link)
        authority = Authority(folder / "tls")
        authority.server("tls", ("localhost", "127.0.0.1"))
        clocks = {name: WallClock(folder / f"{name}.clock") for name in ("operator", *EXTENDERS)}
        parts = _Parts(cluster, folder, authority, links, ports, health, clocks)
        configs = await parts.kubeconfigs(stack, kube, repository)
        users = {"operator": user_of(configs["operator"]), "extender": user_of(configs[EXTENDERS[0]])}
        programs = parts.programs(configs)
        for probes in (readiness, operator):
            stack.push_async_callback(_cancel, asyncio.create_task(probes.run()))
        for program in programs.values():
            stack.push_async_callback(program.stop)
            await program.start()

        async def up() -> bool:
            return len(readiness.ready()) == len(EXTENDERS) and bool(operator.ready())

        await eventually(up, seconds=120, what="the operator and both replicas of the extender to be ready")
        refusals = await stack.enter_async_context(Refusals(kube, authority))
        yield Stage(cluster, kube, folder, programs, links, operator, refusals, users, clocks)


@dataclass(frozen=True)
class _Parts:
    """What the programs are made from."""

    cluster: Cluster
    folder: Path
    authority: Authority
    links: Mapping[str, Link]
    ports: Mapping[str, Ports]
    health: int
    clocks: Mapping[str, WallClock]

    def programs(self, configs: Mapping[str, Path]) -> dict[str, Program]:
        """All of them, not started; `configs` are their kubeconfigs."""
        scheduler = scheduler_configuration(configs["scheduler"], self.authority, self.links["scheduler-extender"].port)
        file = self.folder / "scheduler.yaml"
        file.write_text(yaml.safe_dump(scheduler))
        program = str(self.cluster.program("kube-scheduler"))
        made = {
            "operator": self._python("operator", ["-c", SHORT_MARGIN], self._operator(configs["operator"])),
            "scheduler": Program(
                "scheduler", [program, f"--config={file}", "--secure-port=0"], {}, self.folder / "scheduler.log"
            ),
        }
        for name in EXTENDERS:
            made[name] = self._python(name, ["-m", "synergy_extender"], self._extender(name, configs[name]))
        return made

    def _python(self, name: str, arguments: Sequence[str], env: Mapping[str, str]) -> Program:
        told = {**env, **self.clocks[name].environment}
        return Program(name, [sys.executable, *arguments], told, self.folder / f"{name}.log")

    def _operator(self, kubeconfig: Path) -> dict[str, str]:
        return {
            "KUBECONFIG": str(kubeconfig),
            "SYNERGY_PROFILER_IMAGE": "localhost/kube-synergy-profiler:dev",
            "SYNERGY_EXTENDER_URL": f"https://localhost:{self.links['workers-extender'].port}",
            "SYNERGY_CA_FILE": str(self.authority.certificate),
            "SYNERGY_HEALTH_PORT": str(self.health),
            "SYNERGY_METRICS_PORT": "0",
            "SYNERGY_FENCE_SECONDS": str(FENCE_SECONDS),
        }

    def _extender(self, name: str, kubeconfig: Path) -> dict[str, str]:
        ports = self.ports[name]
        return {
            "SYNERGY_KUBECONFIG": str(kubeconfig),
            "SYNERGY_TLS_DIR": str(self.authority.certificate.parent),
            "SYNERGY_POD_NAME": name,
            "SYNERGY_POD_NAMESPACE": _HOME,
            "SYNERGY_HOST": "127.0.0.1",
            "SYNERGY_SCHEDULER_PORT": str(ports.verbs),
            "SYNERGY_API_PORT": str(ports.api),
            "SYNERGY_OPS_PORT": str(ports.ops),
        }

    async def kubeconfigs(self, stack: AsyncExitStack, kube: KubeClient, repository: Path) -> dict[str, Path]:
        """Kubeconfigs with the rights that the chart gives, each through the component's own link."""
        chart = str(repository / "helm" / "kube-synergy")
        rendered = await run_program(self.cluster, "helm", "template", "kube-synergy", chart, "--kube-version=1.36")
        roles = [item for item in yaml.safe_load_all(rendered) if item and item["kind"] in ("ClusterRole", "Role")]
        files = {"scheduler": self.cluster.paths.config / "scheduler.kubeconfig"}
        for room in ("operator", "extender"):
            rules = [
                r
                for role in roles
                if role["metadata"]["name"].startswith(f"kube-synergy-{room}")
                for r in role["rules"]
            ]
            folder = self.folder / room
            folder.mkdir()
            files[room] = await stack.enter_async_context(kubeconfig_of(kube, self.cluster.kubeconfig, rules, folder))
        made = {}
        for name, room in _ROOMS.items():
            made[name] = self.folder / f"{name}.kubeconfig"
            made[name].write_text(yaml.safe_dump(through(files[room], self.links[f"{name}-api"].port)))
        return made


def through(kubeconfig: Path, port: int) -> dict[str, Any]:
    """The kubeconfig with the API server's address replaced by a port of loopback."""
    config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    for entry in config["clusters"]:
        entry["cluster"]["server"] = f"https://127.0.0.1:{port}"
    return config


@asynccontextmanager
async def _policy(kube: KubeClient) -> AsyncIterator[None]:
    """Short rounds of a policy that preempts; what stood before is put back."""
    try:
        before = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": POLICY})
    except NotFound:
        before = None
        await kube.create(SCHEDULING_POLICIES, {"metadata": {"name": "default"}, "spec": POLICY})
    yield
    if before is None:
        await kube.delete(SCHEDULING_POLICIES, "default")
    else:
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": before})


@asynccontextmanager
async def _namespace(kube: KubeClient, name: str) -> AsyncIterator[None]:
    await kube.create(NAMESPACES, {"metadata": {"name": name}})
    yield
    await kube.delete(NAMESPACES, name)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
