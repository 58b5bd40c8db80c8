"""Plays Kueue's part for TrainingJobs on a real API server.

Kueue itself is not here. This does what its published contract for external jobs asks an integration to do: make a
Workload with the job's pod sets, resume the job with the flavor's node selector once the Workload is admitted, suspend
and restore it when it is evicted, and read from the job's status whether its pods are ready, active, or finished. The
CustomResourceDefinition of Workload has only the fields that this needs.
"""

from dataclasses import dataclass
from typing import Any, Final

from support.waiting import eventually
from synergy_kube import KubeClient, Resource
from synergy_kube.resources import TRAINING_JOBS

Json = dict[str, Any]
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
WORKLOADS: Final = Resource("kueue.x-k8s.io", "v1beta1", "workloads", "Workload", namespaced=True)
_OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Final[Json] = {
    "metadata": {
        "name": "workloads.kueue.x-k8s.io",
        # the group belongs to a community: the API server asks for this annotation
        "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
    },
    "spec": {
        "group": WORKLOADS.group,
        "names": {"plural": "workloads", "singular": "workload", "kind": "Workload", "listKind": "WorkloadList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": WORKLOADS.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}},
                },
            }
        ],
    },
}


@dataclass(frozen=True)
class Finished:
    """The end of a job, as Kueue's `Finished` returns it."""

    message: str
    success: bool


class Kueue:
    """One queue's controller, for one TrainingJob at a time."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self._kube = kube
        self._namespace = namespace

    async def job(self, name: str) -> Json:
        """The TrainingJob."""
        return await self._kube.get(TRAINING_JOBS, name, self._namespace)

    async def workload(self, name: str) -> Json:
        """The Workload of a job."""
        return await self._kube.get(WORKLOADS, name, self._namespace)

    async def enqueue(self, name: str) -> None:
        """Make the Workload of a suspended job that names a queue."""
        job = await self.job(name)
        assert job["spec"]["suspend"], "a job that is created in a queue is suspended"
        owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": name, "uid": job["metadata"]["uid"]}
        body = {
            "metadata": {"name": name, "ownerReferences": [{**owner, "controller": True}]},
            "spec": {"queueName": job["metadata"]["labels"][QUEUE_LABEL], "podSets": pod_sets(job)},
        }
        await self._kube.create(WORKLOADS, body, self._namespace)

    async def admit(self, name: str, node_labels: dict[str, str]) -> None:
        """Admit the Workload on a flavor, and resume the job with the flavor's node labels."""
        await self._condition(name, "Admitted", "True", "Admitted")
        template = {"spec": {"nodeSelector": node_labels}}
        await self._write(name, {"suspend": False, "template": template})

    async def evict(self, name: str) -> None:
        """Evict the Workload: suspend the job, wait until it is not active, and restore its pod sets."""
        await self._condition(name, "Evicted", "True", "Preempted")
        await self._write(name, {"suspend": True})

        async def left() -> bool:
            return not is_active(await self.job(name))

        await eventually(left, seconds=60, what=f"{name} to have no active pods")
        original = (await self.workload(name))["spec"]["podSets"][0]["template"]["spec"].get("nodeSelector") or None
        await self._write(name, {"template": {"spec": {"nodeSelector": original}}})
        await self._condition(name, "Evicted", "False", "Requeued")
        await self._condition(name, "Admitted", "False", "NoReservation")

    async def follow(self, name: str) -> Finished | None:
        """Copy into the Workload what the job's status says; its end, if it has one."""
        job = await self.job(name)
        ready = "True" if pods_ready(job) else "False"
        await self._condition(name, "PodsReady", ready, "PodsReady")
        end = finished(job)
        if end is not None:
            await self._condition(name, "Finished", "True", "Succeeded" if end.success else "Failed")
        return end

    async def _write(self, name: str, spec: Json) -> None:
        await self._kube.merge_patch(TRAINING_JOBS, name, {"spec": spec}, self._namespace)

    async def _condition(self, name: str, kind: str, status: str, reason: str) -> None:
        workload = await self.workload(name)
        found = {one["type"]: one for one in (workload.get("status") or {}).get("conditions") or []}
        found[kind] = {"type": kind, "status": status, "reason": reason}
        body = {"status": {"conditions": list(found.values())}}
        await self._kube.merge_patch(WORKLOADS, name, body, self._namespace, subresource="status")


def pod_sets(job: Json) -> list[Json]:
    """Kueue's `PodSets`: one set of equal workers. The plan adds the GPUs to a worker's container, so do we."""
    spec = job["spec"]
    each = spec.get("gpusPerWorker", spec["gpus"])
    template = {**spec["template"], "spec": {**spec["template"]["spec"]}}
    first, *others = template["spec"]["containers"]
    template["spec"]["containers"] = [{**first, "resources": {"limits": {"nvidia.com/gpu": each}}}, *others]
    return [{"name": "workers", "count": spec["gpus"] // each, "template": template}]


def condition(job: Json, kind: str) -> Json:
    """A condition of the job; empty if it is not there."""
    listed = (job.get("status") or {}).get("conditions") or []
    return next((one for one in listed if one["type"] == kind), {})


def pods_ready(job: Json) -> bool:
    """Kueue's `PodsReady`: all workers run."""
    return condition(job, "Running").get("status") == "True"


def is_active(job: Json) -> bool:
    """Kueue's `IsActive`: a run is open, so pods may hold resources."""
    status = job.get("status") or {}
    run = (status.get("allocation") or {}).get("run", 0)
    return bool(run > (status.get("service") or {}).get("endedRun", 0))


def finished(job: Json) -> Finished | None:
    """Kueue's `Finished`."""
    found = condition(job, "Finished")
    if found.get("status") != "True":
        return None
    return Finished(found["message"], job["status"]["phase"] == "Succeeded")
