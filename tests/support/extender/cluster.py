"""A small cluster in memory for tests of the extender: TrainingJobs, pods and nodes as the API server sends them."""

from collections.abc import Iterable
from typing import Any

from synergy_api import names
from synergy_api.amounts import Amounts
from synergy_api.cluster.nodes import Object
from synergy_api.cluster.pool import read_pools
from synergy_api.cluster.pools import node_capacities
from synergy_api.cluster.tenancy import Tenancy, read_tenancy
from synergy_api.timestamps import format_time
from synergy_extender.cluster.node_requests.request import NodeRequest
from synergy_extender.cluster.pod_index import PodIndex
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key, PodView, read_job, read_pod

GI = 1 << 30
NOW = 1_000_000.0
"""A moment in round 50,000 of 20 s rounds, at its very beginning."""
Share = tuple[str, int, int, int]
"""Node, GPUs, milli-CPU, bytes."""


def share(node: str, gpus: int = 1, cpu_millis: int = 1000, memory_bytes: int = GI) -> dict[str, Any]:
    """A node's share of an allocation."""
    return {"node": node, "gpus": gpus, "cpuMillis": cpu_millis, "memoryBytes": memory_bytes}


def allocation(*workers: dict[str, Any], run: int = 1, until: float | None = NOW + 20, **more: Any) -> dict[str, Any]:
    """A granted and admitted allocation; `more` overrides its fields."""
    lease = {} if until is None else {"leaseUntil": format_time(until)}
    granted = {"run": run, "state": "Granted", "admitted": True, "round": 50_000, "gpuType": "V100"}
    return {**granted, **lease, "workers": list(workers), **more}


def job_object(
    name: str = "j", *, gpus: int = 1, status: dict[str, Any] | None = None, spec: dict[str, Any] | None = None,
    template: dict[str, Any] | None = None, **metadata: Any,
) -> dict[str, Any]:  # fmt: skip
    """A TrainingJob of namespace `team`, queued unless `status` says otherwise."""
    pod_spec = {"containers": [{"name": "train", "image": "x", "command": ["x"]}], **(template or {})}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "creationTimestamp": format_time(NOW - 100),
            **metadata,
        },
        "spec": {"gpus": gpus, "steps": 1000, "template": {"spec": pod_spec}, **(spec or {})},
        "status": {"phase": "Queued", **(status or {})},
    }


def job(name: str = "j", **more: Any) -> JobView:
    """The view of `job_object`."""
    return read_job(job_object(name, **more))


def pod_object(
    name: str, *, node: str = "", gpus: int = 0, cpu: str = "0", memory: str = "0",
    labels: dict[str, str] | None = None, planned: str = "", phase: str = "Pending", uid: str = "",
    deleting_at: float | None = None, made_for: str = "", **spec: Any,
) -> dict[str, Any]:  # fmt: skip
    """A pod of namespace `team`; `deleting_at` is when one that was told to go has to be gone, `made_for` the uid of
    the TrainingJob that controls it."""
    requests = {"nvidia.com/gpu": str(gpus), "cpu": cpu, "memory": memory}
    annotations = {names.ANNOTATION_PLANNED_NODE: planned} if planned else {}
    bound = {"nodeName": node} if node else {}
    going = {"deletionTimestamp": format_time(deleting_at)} if deleting_at is not None else {}
    owners = {"ownerReferences": [{"kind": "TrainingJob", "uid": made_for, "controller": True}]} if made_for else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": uid or f"uid-{name}",
            "resourceVersion": "1",
            "labels": labels or {},
            "annotations": annotations,
            **going,
            **owners,
        },
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}], **bound, **spec},
        "status": {"phase": phase},
    }


def worker_labels(name: str, run: int = 1, rank: int = 0, role: str = names.ROLE_WORKER) -> dict[str, str]:
    """Labels of a worker pod."""
    return {
        names.LABEL_JOB: name,
        names.LABEL_RUN: str(run),
        names.LABEL_RANK: str(rank),
        names.LABEL_ROLE: role,
    }


def worker(name: str = "j", *, run: int = 1, rank: int = 0, **more: Any) -> PodView:
    """The view of a worker pod."""
    return read_pod(pod_object(f"{name}-{run}-{rank}", labels=worker_labels(name, run, rank), **more))


def foreign(name: str, **more: Any) -> PodView:
    """The view of a pod that is not ours."""
    return read_pod(pod_object(name, **more))


def node_object(
    name: str, *, gpus: int = 8, cpu: int = 24, memory_gib: int = 96, gpu_type: str = "V100", ready: bool = True,
    **spec: Any,
) -> dict[str, Any]:  # fmt: skip
    """A node."""
    return {
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": gpu_type}, "resourceVersion": "1"},
        "spec": spec,
        "status": {
            "allocatable": {"nvidia.com/gpu": str(gpus), "cpu": str(cpu), "memory": f"{memory_gib}Gi"},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def cluster(
    nodes: Iterable[Object],
    jobs: Iterable[JobView] = (),
    pods: Iterable[PodView] = (),
    tolerated: Iterable[str] = (),
    *,
    tenancy: Tenancy | None = None,
    pools: Iterable[Object] = (),
    requests: Iterable[NodeRequest] | None = None,
) -> ClusterState:
    """The cluster's state. With `requests`, nodes may be asked for."""
    listed, read = list(nodes), read_pools(pools)[0]
    return ClusterState(
        jobs={j.key: j for j in jobs},
        capacities=node_capacities(listed, read, [{"key": key, "operator": "Exists"} for key in tolerated]),
        nodes={n["metadata"]["name"]: n for n in listed},
        allocatable={n["metadata"]["name"]: Amounts.parse(n["status"]["allocatable"]) for n in listed},
        pods=PodIndex(pods),
        tenancy=tenancy or Tenancy(),
        pools=read,
        requests=tuple(requests or ()),
        grows=requests is not None,
    )


def team_of(*names: str, **caps: Any) -> Tenancy:
    """Tenants of these names that the namespace `team` belongs to, each with these caps."""
    spec = {"namespaces": ["team"], "caps": caps}
    return read_tenancy(
        [{"metadata": {"name": name}, "spec": spec} for name in names], [{"metadata": {"name": "team"}}]
    )


def key(name: str) -> Key:
    """Key of a job of namespace `team`."""
    return Key("team", name)
