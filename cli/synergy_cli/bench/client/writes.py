"""Time of ordinary writes to a real API server: a Job created, a pod's status applied, a pod bound."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from statistics import median
from typing import Any, NamedTuple

import msgspec
from kubernetes.aio import client as package

from synergy_cli.bench.client.bare import Bare
from synergy_kube import ApiError, KubeClient
from synergy_kube.credentials import load
from synergy_kube.resources import JOBS, NAMESPACES, PODS, Resource

MANAGER = "kube-synergy-bench"
_APPLY = "application/apply-patch+yaml"
_WARM = 5
_READY_TRIES = 600
_NOWHERE = "kube-synergy-bench"
"""Scheduler and node of the pods, which do not exist: nothing starts."""


class Written(NamedTuple):
    """One figure: the median milliseconds of a write, and this process's own milliseconds of processor time."""

    write: str
    way: str
    milliseconds: float
    cpu_ms: float


class Way(NamedTuple):
    """One way of writing: creates an object, applies a pod's status, binds a pod."""

    create_job: Callable[[str, str], Awaitable[object]]
    apply_status: Callable[[str, str, int], Awaitable[object]]
    bind: Callable[[str, str], Awaitable[object]]


async def measure(requests: int) -> list[Written]:
    """Each write `requests` times by each way, in turns, in a namespace that is deleted again.

    Raises NoClusterError, ApiError, aiohttp.ClientError or TimeoutError.
    """
    namespace = f"bench-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(await KubeClient.connect())
        configuration = await load(None)
        bare = await stack.enter_async_context(Bare(configuration))
        api = await stack.enter_async_context(package.ApiClient(configuration))
        ways = {
            "aiohttp": _plain(bare.send),
            "KubeClient": _ours(kube),
            "kubernetes": _typed(api),
            "kubernetes, no models": _plain(_sender(api)),
        }
        await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
        try:
            await _until_ready(kube, namespace)
            return await _rounds(kube, ways, namespace, requests)
        finally:
            await kube.delete(NAMESPACES, namespace)


async def _rounds(kube: KubeClient, ways: Mapping[str, Way], namespace: str, requests: int) -> list[Written]:
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for number in range(requests + _WARM):
        for place, (name, way) in enumerate(_turned(ways, number)):
            pod, job = f"pod-{number}-{place}", f"job-{number}-{place}"
            await kube.create(PODS, pod_body(pod), namespace)
            writes = {
                "create a Job": way.create_job(namespace, job),
                "apply a status": way.apply_status(namespace, pod, number),
                "bind a pod": way.bind(namespace, pod),
            }
            for write, request in writes.items():
                spent = await _timed(request)
                if number >= _WARM:
                    found.setdefault((write, name), []).append(spent)
            await kube.delete(PODS, pod, namespace, grace_seconds=0)
            await kube.delete(JOBS, job, namespace)
    return [
        Written(write, way, *(median(column) * 1e3 for column in zip(*times, strict=True)))
        for (write, way), times in sorted(found.items())
    ]


def _turned(ways: Mapping[str, Way], number: int) -> Sequence[tuple[str, Way]]:
    """The ways, each first as often as the others."""
    listed = list(ways.items())
    by = number % len(listed)
    return listed[by:] + listed[:by]


async def _timed(request: Awaitable[object]) -> tuple[float, float]:
    began, worked = time.perf_counter(), time.process_time()
    await request
    return time.perf_counter() - began, time.process_time() - worked


async def _until_ready(kube: KubeClient, namespace: str) -> None:
    """Wait for the namespace's default service account, without which no pod is admitted."""
    accounts = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
    for _ in range(_READY_TRIES):
        if (await kube.list(accounts, namespace))["items"]:
            return
        await asyncio.sleep(0.05)
    raise TimeoutError(f"namespace {namespace} has no service account: does kube-controller-manager run?")


def _ours(kube: KubeClient) -> Way:
    return Way(
        lambda namespace, name: kube.create(JOBS, job_body(name), namespace),
        lambda namespace, name, value: kube.apply(
            PODS, name, status_body(value), namespace, manager=MANAGER, subresource="status"
        ),
        lambda namespace, name: kube.create_subresource(PODS, name, "binding", binding_body(name), namespace),
    )


Send = Callable[[str, str, Mapping[str, Any], Mapping[str, str], str], Awaitable[object]]
"""Method, path, body, query, content type."""


def _plain(send: Send) -> Way:
    """Bodies as they are, by paths."""
    typed, json = {"apiVersion": "v1", "kind": "Pod"}, "application/json"
    query = {"fieldManager": MANAGER, "force": "true"}

    def apply(namespace: str, name: str, value: int) -> Awaitable[object]:
        body = {**typed, "metadata": {"name": name, "namespace": namespace}, **status_body(value)}
        return send("PATCH", PODS.path(namespace, name, "status"), body, query, _APPLY)

    return Way(
        lambda namespace, name: send(
            "POST", JOBS.path(namespace), {"apiVersion": "batch/v1", "kind": "Job", **job_body(name)}, {}, json
        ),
        apply,
        lambda namespace, name: send("POST", PODS.path(namespace, name, "binding"), binding_body(name), {}, json),
    )


def _sender(api: package.ApiClient) -> Send:
    """The package's own way to a request, without its models."""

    async def send(
        method: str, path: str, body: Mapping[str, Any], query: Mapping[str, str], content_type: str
    ) -> object:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        _, url, headers, data, _ = await api.param_serialize(
            method, path, {}, list(query.items()), headers, dict(body), auth_settings=["BearerToken"]
        )
        answer: Any = await api.call_api(method, url, headers, data)
        content = await answer.read()
        if answer.status >= 400:
            raise ApiError(answer.status, "", content.decode(errors="replace"))
        return msgspec.json.decode(content)

    return send


def _typed(api: package.ApiClient) -> Way:
    core, batch = package.CoreV1Api(api), package.BatchV1Api(api)

    def apply(namespace: str, name: str, value: int) -> Awaitable[object]:
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}
        answer: Awaitable[object] = core.patch_namespaced_pod_status(
            name, namespace, {**body, **status_body(value)}, field_manager=MANAGER, force=True, _content_type=_APPLY
        )
        return answer

    def bind(namespace: str, name: str) -> Awaitable[object]:
        body: Any = package.V1Binding.from_dict(binding_body(name))
        # the API server answers a Binding with a Status, which the package cannot read as a Binding
        answer: Awaitable[object] = core.create_namespaced_pod_binding_without_preload_content(name, namespace, body)
        return answer

    def create(namespace: str, name: str) -> Awaitable[object]:
        body: Any = package.V1Job.from_dict(job_body(name))
        answer: Awaitable[object] = batch.create_namespaced_job(namespace, body)
        return answer

    return Way(create, apply, bind)


def _container() -> dict[str, Any]:
    env = [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(12)]
    limits = {"cpu": "4", "memory": "16Gi"}
    return {"name": "train", "image": "images.example/train:1", "env": env, "resources": {"limits": limits}}


def job_body(name: str) -> dict[str, Any]:
    """A suspended Job: it makes no pods."""
    template = {"spec": {"restartPolicy": "Never", "containers": [_container()]}}
    return {"metadata": {"name": name}, "spec": {"suspend": True, "template": template}}


def pod_body(name: str) -> dict[str, Any]:
    """A pod that no scheduler takes."""
    return {"metadata": {"name": name}, "spec": {"schedulerName": _NOWHERE, "containers": [_container()]}}


def status_body(value: int) -> dict[str, Any]:
    """A condition of a pod."""
    condition = {"type": "kube-synergy.dev/bench", "status": "True", "message": str(value)}
    return {"status": {"conditions": [condition]}}


def binding_body(name: str) -> dict[str, Any]:
    """A Binding to a node that does not exist."""
    target = {"apiVersion": "v1", "kind": "Node", "name": _NOWHERE}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
