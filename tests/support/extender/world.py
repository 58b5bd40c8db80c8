"""A replica of the extender on this machine, a real kube-scheduler that asks it, and one who plays the operator."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from support.waiting import eventually
from synergy_api import names
from synergy_api.quantity import format_bytes, format_cpu
from synergy_devcluster.control_plane.pki import Authority
from synergy_extender.app import Extender
from synergy_extender.config import Settings
from synergy_extender.leader import Timing
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import DEPLOYMENTS, PODS, SCHEDULING_POLICIES, TRAINING_JOBS, Resource

Object = dict[str, Any]
QUICK = Timing(lease_s=3.0, renew_s=2.0, retry_s=0.3)
GIB = 1 << 30
TOLERATIONS = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
_PRODUCT = ("kube-synergy-operator", "kube-synergy-extender", "kube-synergy-scheduler")


@dataclass(frozen=True)
class Replica:
    """A running extender and where it listens."""

    extender: Extender
    verbs_port: int
    api_port: int
    ops_port: int
    authority: Authority

    def api(self) -> httpx.AsyncClient:
        """A client of the API."""
        trust = ssl.create_default_context(cafile=str(self.authority.certificate))
        return httpx.AsyncClient(base_url=f"https://localhost:{self.api_port}", verify=trust)


@asynccontextmanager
async def replica(
    kubeconfig: Path,
    namespace: str,
    authority: Authority,
    name: str,
    leader: Timing = QUICK,
    *,
    autoscaling: bool = False,
) -> AsyncIterator[Replica]:
    """Run a replica, ready."""
    settings = Settings(
        tls_dir=authority.certificate.parent,
        pod_name=name,
        pod_namespace=namespace,
        host="127.0.0.1",
        scheduler_port=0,
        api_port=0,
        ops_port=0,
        autoscaling=autoscaling,
        leader=leader,
    )
    async with await KubeClient.connect(kubeconfig=str(kubeconfig)) as client:
        extender = Extender(settings, client)
        running = asyncio.create_task(extender.run())
        try:
            await asyncio.wait_for(extender.cache.wait_synced(), 30)
            verbs, api, ops = extender.servers.ports
            yield Replica(extender, verbs, api, ops, authority)
        finally:
            extender.stop()
            await asyncio.wait_for(running, 30)


@asynccontextmanager
async def policy_of_5_s(kube: KubeClient) -> AsyncIterator[None]:
    """Rounds of 5 s, first in, first out; what stood before is put back."""
    spec = {"policy": "fifo", "mechanism": "tune", "roundSeconds": 5}
    before: Object | None = None
    try:
        before = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": spec})
    except NotFound:
        await kube.create(SCHEDULING_POLICIES, {"metadata": {"name": "default"}, "spec": spec})
    yield
    if before is None:
        await kube.delete(SCHEDULING_POLICIES, "default")
    else:
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": before})


def scheduler_configuration(kubeconfig: Path, authority: Authority, port: int) -> Object:
    """The configuration of a kube-scheduler with the profile `kube-synergy` that asks the extender on `port`."""
    certificate = authority.client("scheduler", "system:kube-scheduler")
    extender = {
        "urlPrefix": f"https://localhost:{port}",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "bindVerb": "bind",
        "preemptVerb": "preempt",
        "weight": 10,
        "enableHTTPS": True,
        "tlsConfig": {
            "caFile": str(authority.certificate),
            "certFile": str(certificate.certificate),
            "keyFile": str(certificate.key),
        },
        "httpTimeout": "5s",
        "nodeCacheCapable": True,
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 200, "burst": 400},
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": names.SCHEDULER_NAME}],
        "extenders": [extender],
    }


@asynccontextmanager
async def scheduler(program: Path, kubeconfig: Path, replica: Replica, folder: Path) -> AsyncIterator[None]:
    """Run a kube-scheduler with the profile `kube-synergy` that asks the replica."""
    configuration = scheduler_configuration(kubeconfig, replica.authority, replica.verbs_port)
    file = folder / "scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration))
    with (folder / "scheduler.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program, f"--config={file}", "--secure-port=0", stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL
        )
        try:
            yield
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), 20)


@asynccontextmanager
async def without_the_product(kube: KubeClient) -> AsyncIterator[None]:
    """While the chart's own components, if installed, stand still: two leaders would plan against each other."""
    before: dict[str, int] = {}
    for name in _PRODUCT:
        with suppress(NotFound):
            before[name] = (await kube.get(DEPLOYMENTS, name, "kube-synergy"))["spec"]["replicas"]
            await kube.merge_patch(DEPLOYMENTS, name, {"spec": {"replicas": 0}}, "kube-synergy")

    async def still() -> bool:
        pods = (await kube.list(PODS, "kube-synergy"))["items"] if before else []
        return not any(pod["metadata"]["name"].startswith(tuple(before)) for pod in pods)

    await eventually(still, seconds=60, what="the installed components to stop")
    try:
        yield
    finally:
        for name, replicas in before.items():
            await kube.merge_patch(DEPLOYMENTS, name, {"spec": {"replicas": replicas}}, "kube-synergy")


class Operator:
    """Plays the operator in one namespace: submits jobs, writes its part of the status, makes worker pods."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace

    def only_on(self, node: str) -> Object:
        """A template that admits one fake node."""
        container = {"name": "train", "image": "fake", "command": ["train"]}
        place = {"nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": TOLERATIONS}
        return {"spec": {"containers": [container], **place}}

    async def queue(self, name: str) -> Object:
        """What the job is told while it waits."""

        async def there() -> Object | None:
            queue: Object | None = ((await self.job(name)).get("status") or {}).get("queue")
            return queue

        return await eventually(there, seconds=15, what=f"{name} to be told why it waits", every=0.05)

    async def submit(self, name: str, *, gpus: int = 1, status: Object | None = None, **spec: Any) -> Object:
        """A job that is queued, or what `status` says."""
        template = {
            "spec": {
                "containers": [{"name": "train", "image": "fake", "command": ["train"]}],
                "tolerations": TOLERATIONS,
                "nodeSelector": {"type": "kwok"},
            }
        }
        body = {"metadata": {"name": name}, "spec": {"gpus": gpus, "steps": 1000, "template": template, **spec}}
        await self.kube.create(TRAINING_JOBS, body, self.namespace)
        return await self.write(name, **(status or {"phase": "Queued"}))

    async def write(self, name: str, **status: Any) -> Object:
        """The operator's whole part of the status."""
        return await self.kube.apply(
            TRAINING_JOBS,
            name,
            {"status": status},
            self.namespace,
            manager=names.MANAGER_OPERATOR,
            subresource="status",
        )

    async def job(self, name: str) -> Object:
        """The job now."""
        return await self.kube.get(TRAINING_JOBS, name, self.namespace)

    async def allocation(self, name: str, **want: Any) -> Object:
        """The job's allocation once it has these values."""

        async def there() -> Object | None:
            allocation: Object = ((await self.job(name)).get("status") or {}).get("allocation") or {}
            return allocation if allocation and all(allocation.get(k) == v for k, v in want.items()) else None

        return await eventually(there, seconds=20, what=f"allocation of {name} with {want}", every=0.05)

    async def start(self, name: str, allocation: Object) -> list[Object]:
        """One worker pod for each share, as the operator makes them, without the gate."""
        run, pods = allocation["run"], []
        for rank, share in enumerate(allocation["workers"]):
            pods.append(await self.kube.create(PODS, self.worker(name, run, rank, share), self.namespace))
        return pods

    def worker(self, job: str, run: int, rank: int, share: Object) -> Object:
        """The manifest of one worker."""
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [share["node"]]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        amounts = {
            "cpu": format_cpu(share["cpuMillis"]),
            "memory": format_bytes(share["memoryBytes"]),
            share.get("resource", names.RESOURCE_GPU): share.get("devices", share["gpus"]),
        }
        container = {"name": "train", "image": "fake", "resources": {"requests": amounts, "limits": amounts}}
        devices = {names.ANNOTATION_DEVICES: str(share["devices"])} if "devices" in share else {}
        if "resource" in share:
            devices[names.ANNOTATION_RESOURCE] = share["resource"]
        return {
            "metadata": {
                "name": names.worker_pod_name(job, run, rank),
                "labels": {
                    names.LABEL_JOB: job,
                    names.LABEL_RUN: str(run),
                    names.LABEL_RANK: str(rank),
                    names.LABEL_ROLE: names.ROLE_WORKER,
                },
                "annotations": {names.ANNOTATION_PLANNED_NODE: share["node"], **devices},
            },
            "spec": {
                "schedulerName": names.SCHEDULER_NAME,
                "restartPolicy": "Never",
                "tolerations": TOLERATIONS,
                "affinity": {"nodeAffinity": required},
                "containers": [container],
            },
        }

    async def bound(self, pod: str, seconds: float = 20) -> Object:
        """The pod once it is bound."""

        async def there() -> Object | None:
            item = await self.kube.get(PODS, pod, self.namespace)
            return item if item["spec"].get("nodeName") else None

        return await eventually(there, seconds=seconds, what=f"pod {pod} to be bound", every=0.05)

    async def token(self, pod: Object | None, audience: str | None = names.TOKEN_AUDIENCE) -> str:
        """A token of the default service account, bound to the pod if one is given."""
        spec: Object = {"expirationSeconds": 600} | ({"audiences": [audience]} if audience else {})
        if pod is not None:
            metadata = pod["metadata"]
            reference = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
            spec["boundObjectRef"] = reference
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = await self.kube.create_subresource(SERVICE_ACCOUNTS, "default", "token", body, self.namespace)
        return str(answer["status"]["token"])
