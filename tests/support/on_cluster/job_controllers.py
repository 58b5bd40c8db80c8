"""Plays the controllers of JobSet, PyTorchJob and TrainJob on a real API server.

Those controllers are not here. Their part, as far as a managed object needs it: pods from the templates while the
object is not suspended, none while it is, and conditions that say that it is suspended or has succeeded. Of a JobSet's
Jobs only the pods are made; a TrainJob's pods are made of its trainer and its override for `node`, without a runtime.
The definitions have the published names, and schemas that keep every field.
"""

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from synergy_kube import ApiError, KubeClient, NotFound, Resource
from synergy_kube.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS

Json = dict[str, Any]
JOB_SETS: Final = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", namespaced=True)
PYTORCH_JOBS: Final = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", namespaced=True)
TRAIN_JOBS: Final = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", namespaced=True)
_COMPLETE: Final = {"JobSet": "Completed", "PyTorchJob": "Succeeded", "TrainJob": "Complete"}
_LOOK_S: Final = 0.2
_OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(resource: Resource) -> Json:
    """A CustomResourceDefinition that keeps every field."""
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": schema,
    }
    names = {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind}
    spec = {"group": resource.group, "names": names, "scope": "Namespaced", "versions": [version]}
    # groups of the community ask for this annotation
    approved = {"api-approved.kubernetes.io": "unapproved, for a test"}
    return {"metadata": {"name": f"{resource.plural}.{resource.group}", "annotations": approved}, "spec": spec}


@asynccontextmanager
async def defined(kube: KubeClient, resource: Resource) -> AsyncIterator[None]:
    """Meanwhile the API server has the kind."""
    body = definition(resource)
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, body)
    try:
        yield
    finally:
        await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, body["metadata"]["name"])


@asynccontextmanager
async def controller(kube: KubeClient, resource: Resource, namespace: str, name: str) -> AsyncIterator[None]:
    """The controller of one object runs meanwhile. An error of its own fails the test."""
    task = asyncio.create_task(_control(kube, resource, namespace, name))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def templates(kind: str, spec: Json) -> list[Json]:
    """The template of each pod of the object."""
    match kind:
        case "JobSet":
            return [
                replicated["template"]["spec"]["template"]
                for replicated in spec["replicatedJobs"]
                for _ in range(replicated.get("replicas", 1) * replicated["template"]["spec"].get("parallelism", 1))
            ]
        case "PyTorchJob":
            replicas = spec["pytorchReplicaSpecs"].values()
            return [one["template"] for one in replicas for _ in range(one.get("replicas", 1))]
        case _:
            trainer, (override,) = spec["trainer"], spec["podTemplateOverrides"]
            container = {"name": "node", "image": trainer["image"], "resources": trainer["resourcesPerNode"]}
            pod = {**override["spec"], "restartPolicy": "Never", "containers": [container]}
            return [{"metadata": override["metadata"], "spec": pod} for _ in range(trainer["numNodes"])]


async def served(call: Callable[[], Awaitable[Json]]) -> Json | None:
    """The answer of a call for a kind that has just been defined, None while the API server is not ready for it.

    It answers 404 before it serves the kind, and 429 and 503 while it makes the store of it, which it may make anew.
    """
    try:
        return await call()
    except ApiError as error:
        if error.code not in (404, 429, 503):
            raise
        return None


async def _control(kube: KubeClient, resource: Resource, namespace: str, name: str) -> None:
    made = 0
    while True:
        item = await served(partial(kube.get, resource, name, namespace))
        if item is None:
            await asyncio.sleep(_LOOK_S)
            continue
        spec = item["spec"]
        pods = [pod for pod in (await kube.list(PODS, namespace))["items"] if _lives(pod, item)]
        done = sum(pod["status"]["phase"] == "Succeeded" for pod in pods)
        wanted = templates(resource.kind, spec) if "podTemplateOverrides" in spec or resource is not TRAIN_JOBS else []
        suspended = bool((spec.get("runPolicy") or spec).get("suspend"))
        if suspended:
            await _delete(kube, namespace, pods)
        elif wanted and done == len(wanted):
            told = {"type": _COMPLETE[resource.kind], "status": "True", "message": "all pods are done"}
            await kube.merge_patch(resource, name, {"status": {"conditions": [told]}}, namespace, subresource="status")
            return
        else:
            for template in wanted[len(pods) :]:
                made += 1
                await kube.create(PODS, _pod(item, template, f"{name}-{made}"), namespace)
        await _note(kube, resource, item, suspended=suspended)
        await asyncio.sleep(_LOOK_S)


async def _note(kube: KubeClient, resource: Resource, item: Json, *, suspended: bool) -> None:
    """The condition by which the object's controller says that it is suspended, or no longer is."""
    noted = any(
        c["type"] == "Suspended" and c["status"] == "True" for c in item.get("status", {}).get("conditions", [])
    )
    if noted != suspended:
        told = {"type": "Suspended", "status": "True" if suspended else "False"}
        name, namespace = item["metadata"]["name"], item["metadata"]["namespace"]
        await kube.merge_patch(resource, name, {"status": {"conditions": [told]}}, namespace, subresource="status")


def _lives(pod: Json, item: Json) -> bool:
    """Whether the pod is the object's, and not on its way out."""
    owners = [one["uid"] for one in pod["metadata"].get("ownerReferences") or []]
    return item["metadata"]["uid"] in owners and "deletionTimestamp" not in pod["metadata"]


async def _delete(kube: KubeClient, namespace: str, pods: list[Json]) -> None:
    for pod in pods:
        try:
            await kube.delete(PODS, pod["metadata"]["name"], namespace)
        except NotFound:
            continue


def _pod(item: Json, template: Json, name: str) -> Json:
    owner = {"apiVersion": item["apiVersion"], "kind": item["kind"], "name": item["metadata"]["name"]}
    metadata = copy.deepcopy(template.get("metadata") or {})
    metadata |= {"name": name, "ownerReferences": [{**owner, "uid": item["metadata"]["uid"], "controller": True}]}
    return {"metadata": metadata, "spec": copy.deepcopy(template["spec"])}
