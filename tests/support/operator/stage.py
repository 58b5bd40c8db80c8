"""The operator as a process, and a stage for it on a real API server: it plays the extender and the scheduler."""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from support.waiting import eventually
from synergy_api import names
from synergy_api.parts.allocation import Allocation
from synergy_api.timestamps import format_time
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import EVENTS, JOBS, PODS, TRAINING_JOBS

Json = dict[str, Any]
NODES = ("fake-v100-000", "fake-v100-001")
V100 = "Tesla-V100-SXM2-16GB"
GIB = 1 << 30


class OperatorProcess:
    """`python3 -m synergy_operator` beside the cluster. It writes its log to `folder/operator.log`."""

    def __init__(self, kubeconfig: Path, folder: Path, **environ: str) -> None:
        ca = folder / "ca.crt"
        ca.write_text("-----BEGIN CERTIFICATE-----\n")
        with socket.socket() as free, socket.socket() as another:
            free.bind(("127.0.0.1", 0))
            another.bind(("127.0.0.1", 0))
            self.port, self.metrics_port = free.getsockname()[1], another.getsockname()[1]
        self.log = folder / "operator.log"
        self._env = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "SYNERGY_PROFILER_IMAGE": "localhost/kube-synergy-profiler:dev",
            "SYNERGY_EXTENDER_URL": "https://extender.example:9444",
            "SYNERGY_CA_FILE": str(ca),
            "SYNERGY_HEALTH_PORT": str(self.port),
            "SYNERGY_METRICS_PORT": str(self.metrics_port),
            **environ,
        }
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, seconds: float = 60) -> None:
        """Start it and wait until it answers its probe. If it does not, it is killed: nobody else would end it."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "synergy_operator", env=self._env, stdout=log, stderr=log
            )
        try:
            await eventually(self._up, seconds=seconds, what=f"the operator to answer its probe; its log: {self.log}")
        except BaseException:
            await self._killed()
            raise

    async def healthy(self) -> bool:
        """Whether the liveness probe passes."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{self.port}/healthz") as response,
            ):
                return response.status == 200
        except aiohttp.ClientError:
            return False

    async def _up(self) -> bool:
        assert self._process is not None
        code = self._process.returncode
        assert code is None, f"the operator has ended with {code}; its log: {self.log}"
        return await self.healthy()

    async def _killed(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def metrics(self) -> dict[str, float]:
        """Each sample that the operator exports, by name and labels as Prometheus reads them."""
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            assert response.status == 200
            lines = (await response.text()).splitlines()
        pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    async def end(self, how: signal.Signals) -> int:
        """End it by a signal. Returns its exit code. If it does not end in a minute, it is killed."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)
        try:
            return await asyncio.wait_for(self._process.wait(), 60)
        finally:
            await self._killed()


@asynccontextmanager
async def running_operator(kubeconfig: Path, folder: Path, **environ: str) -> AsyncIterator[OperatorProcess]:
    """An operator that runs meanwhile, with `environ` beside what it needs."""
    operator = OperatorProcess(kubeconfig, folder, **environ)
    await operator.start()
    try:
        yield operator
    finally:
        await operator.end(signal.SIGTERM)


def template(**annotations: str) -> Json:
    """A pod template for fake nodes; annotations such as run-seconds, exit-code and message say how the pod ends."""
    container = {"name": "train", "image": "example/train:1", "command": ["python3", "train.py"]}
    marks = {f"kwok.kube-synergy.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"metadata": {"annotations": marks}, "spec": {"containers": [container], "nodeSelector": {"type": "kwok"}}}


class Stage:
    """One namespace: submits jobs, writes allocations as the leader would, binds pods as kube-scheduler would."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace

    async def submit(self, name: str = "job", **spec: Any) -> None:
        """Create a TrainingJob on the fake V100s, without a profile unless `spec` says otherwise."""
        full = {
            "gpus": 1,
            "steps": 100,
            "gpuTypes": [V100],
            "template": template(),
            "profile": {"mode": "Skip"},
            **spec,
        }
        await self.kube.create(TRAINING_JOBS, {"metadata": {"name": name}, "spec": full}, self.namespace)

    async def job(self, name: str = "job") -> Json:
        """The TrainingJob as it is."""
        return await self.kube.get(TRAINING_JOBS, name, self.namespace)

    async def grant(
        self, *shares: tuple[str, int, int, int], run: int = 1, name: str = "job", **fields: Any
    ) -> Allocation:
        """Give the job a place: (node, GPUs, milli-CPU, GiB) for each node; `fields` override the allocation's."""
        workers = [
            {"node": node, "gpus": gpus, "cpuMillis": cpu, "memoryBytes": gib * GIB} for node, gpus, cpu, gib in shares
        ]
        until = time.time() + 600
        wire = {
            "run": run,
            "state": "Granted",
            "admitted": True,
            "leaseUntil": format_time(until),
            "gpuType": V100,
            "workers": workers,
            **fields,
        }
        allocation = Allocation.model_validate(wire)
        await self.allocate(allocation, name)
        return allocation

    async def allocate(self, allocation: Allocation, name: str = "job") -> None:
        """Write an allocation as the leading extender replica does."""
        body = {"status": {"allocation": allocation.to_wire()}}
        await self.kube.apply(
            TRAINING_JOBS, name, body, self.namespace, manager=names.MANAGER_PLAN, subresource="status"
        )

    async def revoke(self, allocation: Allocation, *, lease_in: float = 0.0, name: str = "job") -> None:
        """Take the place back."""
        until = format_time(time.time() + lease_in)
        update = {"state": "Revoked", "lease_until": until, "reason": "another job is first"}
        await self.allocate(allocation.model_copy(update=update), name)

    async def until(self, what: str, holds: Callable[[Json], bool], *, seconds: float = 20, name: str = "job") -> Json:
        """The job once `holds(status)` is true. Raises AssertionError with status and pods if that takes longer."""
        last: Json = {}

        async def there() -> Json | None:
            last.clear()
            last.update(await self.job(name))
            return last if holds(last.get("status") or {}) else None

        try:
            return await eventually(there, seconds=seconds, what=what, every=0.05)
        except AssertionError as error:
            pods = {pod["metadata"]["name"]: pod["status"] for pod in await self.pods()}
            raise AssertionError(f"{error}: status {last.get('status')}, pods {pods}") from None

    async def phase(self, *phases: str, name: str = "job", seconds: float = 20) -> Json:
        """The job's status once it is in one of the phases."""
        wanted = f"{name} to be {' or '.join(phases)}"
        job = await self.until(wanted, lambda status: status.get("phase") in phases, name=name, seconds=seconds)
        return dict(job["status"])

    async def pods(self, run: int | None = None) -> list[Json]:
        """The pods of the namespace, of one run if one is given, by name."""
        selector = f"{names.LABEL_RUN}={run}" if run is not None else ""
        items = (await self.kube.list(PODS, self.namespace, label_selector=selector))["items"]
        return sorted(items, key=lambda pod: str(pod["metadata"]["name"]))

    async def batch_jobs(self) -> list[Json]:
        """The batch Jobs of the namespace, by name."""
        items = (await self.kube.list(JOBS, self.namespace))["items"]
        return sorted(items, key=lambda job: str(job["metadata"]["name"]))

    async def bind(self, count: int, run: int | None = None) -> list[Json]:
        """Bind pods to their planned nodes once `count` of them are free of their gates."""

        async def free() -> list[Json] | None:
            pods = [pod for pod in await self.pods(run) if not pod["spec"].get("schedulingGates")]
            unbound = [pod for pod in pods if not pod["spec"].get("nodeName")]
            return unbound if len(unbound) >= count else None

        pods = await eventually(free, seconds=20, what=f"{count} pods without gates", every=0.05)
        for pod in pods:
            await self.bind_pod(pod)
        return pods

    async def bind_pod(self, pod: Mapping[str, Any]) -> None:
        """Bind one pod to the node it is pinned to."""
        name = pod["metadata"]["name"]
        node = pod["metadata"]["annotations"][names.ANNOTATION_PLANNED_NODE]
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.kube.create_subresource(PODS, name, "binding", body, self.namespace)

    async def ended(self) -> None:
        """Wait until all pods have ended."""

        async def over() -> bool:
            return all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in await self.pods())

        await eventually(over, seconds=30, what="all pods to end", every=0.05)

    async def gone(self, pod: str) -> None:
        """Wait until a pod is gone."""

        async def absent() -> bool:
            try:
                await self.kube.get(PODS, pod, self.namespace)
            except NotFound:
                return True
            return False

        await eventually(absent, seconds=30, what=f"{pod} to be gone", every=0.05)

    async def told(self, reason: str) -> None:
        """Wait until an event with this reason was posted: events come after the status that they tell of."""

        async def posted() -> bool:
            return reason in await self.events()

        await eventually(posted, seconds=10, what=f"the event {reason}", every=0.05)

    async def events(self) -> list[str]:
        """The reasons of the TrainingJob's events so far, in order of time."""
        items = (await self.kube.list(EVENTS, self.namespace))["items"]
        ours = [item for item in items if item["involvedObject"]["kind"] == "TrainingJob"]
        ours.sort(key=lambda item: int(item["metadata"]["resourceVersion"]))
        return [str(item["reason"]) for item in ours]


def condition(status: Mapping[str, Any], kind: str) -> Json:
    """One condition of a status, empty if it is not there."""
    return next((dict(c) for c in status.get("conditions") or [] if c["type"] == kind), {})
