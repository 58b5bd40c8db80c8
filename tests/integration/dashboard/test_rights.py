"""The dashboard against the real API server: real tokens, real rights, real watches."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

import synergy_devcluster
from support.on_cluster.namespaces import fresh_namespace
from support.on_cluster.service_account import kubeconfig_of
from support.waiting import eventually
from synergy_api.timestamps import format_time
from synergy_dashboard.config import Settings
from synergy_dashboard.process import Dashboard
from synergy_dashboard.store.store import Store
from synergy_kube import KubeClient, Resource
from synergy_kube.resources import TRAINING_JOBS

pytestmark = pytest.mark.integration

GROUP = "kube-synergy.dev"
RULES = [
    {"apiGroups": [""], "resources": ["nodes", "events"], "verbs": ["get", "list", "watch"]},
    {
        "apiGroups": [GROUP],
        "resources": ["trainingjobs", "gpupools", "schedulingpolicies", "tenants", "throughputprofiles"],
        "verbs": ["get", "list", "watch"],
    },
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
]
"""All that the dashboard needs of the API server, but for futures."""
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", namespaced=True)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", namespaced=True)


@dataclass
class Running:
    """A dashboard in this process."""

    dashboard: Dashboard

    async def get(self, path: str, token: str, status: int = 200) -> Any:
        """The answer, which must have that status."""
        async with self.http(token) as http:
            answer = await http.get(f"/api/v1/{path}")
        assert answer.status_code == status, answer.text
        return answer.json()

    def http(self, token: str) -> httpx.AsyncClient:
        """A client with the token."""
        url = f"http://127.0.0.1:{self.dashboard.servers.ports[0]}"
        return httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30)


@pytest_asyncio.fixture
async def running(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, custom_resources: None, tmp_path: Path
) -> AsyncIterator[Running]:
    """A dashboard that has the chart's rights and has read the cluster."""
    store = Store(f"sqlite:///{tmp_path}/history.db")
    await asyncio.to_thread(store.migrate)
    settings = Settings(database="", host="127.0.0.1", port=0, ops_port=0)
    async with (
        kubeconfig_of(kube, devcluster.kubeconfig, RULES, tmp_path) as own,
        await KubeClient.connect(str(own)) as client,
    ):
        dashboard = Dashboard(settings, client, store)
        task = asyncio.create_task(dashboard.run())
        await asyncio.wait_for(dashboard.live.wait_synced(), 60)
        try:
            yield Running(dashboard)
        finally:
            dashboard.stop()
            await asyncio.wait_for(task, 30)
            await asyncio.to_thread(store.close)


async def token_of(kube: KubeClient, namespace: str, *, may_see: bool) -> str:
    """A token of a new account of the namespace, which may get its TrainingJobs or not."""
    name = f"user-{uuid.uuid4().hex[:8]}"
    await kube.create(ACCOUNTS, {"metadata": {"name": name}}, namespace)
    if may_see:
        rules = [{"apiGroups": [GROUP], "resources": ["trainingjobs"], "verbs": ["get"]}]
        await kube.create(ROLES, {"metadata": {"name": name}, "rules": rules}, namespace)
        role = {"apiGroup": ROLES.group, "kind": "Role", "name": name}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        await kube.create(BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}, namespace)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    answer = await kube.create_subresource(ACCOUNTS, name, "token", request, namespace)
    return str(answer["status"]["token"])


async def submit(kube: KubeClient, namespace: str, name: str) -> None:
    """A job that is held, so that a product that may be there leaves it alone."""
    container = {"name": "train", "image": "fake", "command": ["true"]}
    spec = {"gpus": 1, "steps": 10, "suspend": True, "template": {"spec": {"containers": [container]}}}
    await kube.create(TRAINING_JOBS, {"metadata": {"name": name}, "spec": spec}, namespace)


@asynccontextmanager
async def stream_of(running: Running, token: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """The changes that the stream tells."""

    async def changes(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
        async for line in lines:
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))

    async with running.http(token) as http, http.stream("GET", "/api/v1/stream") as stream:
        assert stream.status_code == 200
        yield changes(stream.aiter_lines())


async def test_a_user_sees_their_namespace_only_and_hears_of_its_changes(
    kube: KubeClient, namespace: str, running: Running
) -> None:
    async with fresh_namespace(kube) as other:
        await submit(kube, namespace, "mine")
        await submit(kube, other, "theirs")
        live = running.dashboard.live

        async def known() -> bool:
            return {namespace, other} <= live.rows.namespaces

        await eventually(known, seconds=20, what="both jobs to be seen")
        token = await token_of(kube, namespace, may_see=True)
        me = await running.get("me", token)
        assert (me["everything"], me["namespaces"]) == (False, [namespace])
        queue = await running.get("queue", token)
        assert [row["job"] for row in queue["rows"]] == ["mine"]
        assert queue["hidden"] >= 1
        await running.get(f"jobs/{other}/theirs", token, status=403)
        page = await running.get(f"jobs/{namespace}/mine", token)
        assert (page["phase"], page["events"][0]["what"]) in (("Pending", "Created"), ("Suspended", "Created"))
        async with stream_of(running, token) as changes:
            await anext(changes)
            began = time.monotonic()
            progress = {"run": 1, "steps": 7, "stepsPerSecond": 1.0, "updatedAt": format_time(time.time())}
            status = {"status": {"progress": progress}}
            await kube.merge_patch(TRAINING_JOBS, "theirs", status, other, subresource="status")
            await kube.merge_patch(TRAINING_JOBS, "mine", status, namespace, subresource="status")
            name = f"{namespace}/mine"
            async with asyncio.timeout(20):
                while True:
                    change = await anext(changes)
                    assert not any(key.startswith(other) for key in (*change["queue"], *change["jobs"]))
                    if (change["queue"].get(name) or {}).get("steps_done") == 7:
                        break
            assert time.monotonic() - began < 20
            await kube.delete(TRAINING_JOBS, "mine", namespace)
            async with asyncio.timeout(20):
                while name not in change["queue"] or change["queue"][name] is not None:
                    change = await anext(changes)


async def test_those_without_rights_or_a_token_are_refused(kube: KubeClient, namespace: str, running: Running) -> None:
    await submit(kube, namespace, "hidden")
    token = await token_of(kube, namespace, may_see=False)
    for path in ("cluster", "queue", "rounds", "tenants", "export", "stream", f"jobs/{namespace}/hidden"):
        assert "may not get trainingjobs" in (await running.get(path, token, status=403))["error"]
        assert "refuses the token" in (await running.get(path, "made-up", status=401))["error"]
