"""The dashboard of the installed product: opened as people open it, with the rights of each."""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

import synergy_devcluster
from support import needed
from support.on_cluster.jobs import matrix, reaches, restricted_template, submit
from support.waiting import eventually
from synergy_kube import KubeClient, Resource
from synergy_kube.resources import PODS

pytestmark = pytest.mark.e2e

PLUGIN = Path(sys.executable).parent / "kubectl-synergy"
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", namespaced=True)
TRAIN = """
import time, synergy_job
for step in synergy_job.iterate(range(10**6)):
    time.sleep(0.02)
"""


@contextmanager
def opened(devcluster: synergy_devcluster.Cluster, kubeconfig: Path) -> Iterator[tuple[str, str]]:
    """Address and token, as `kubectl synergy dashboard` tells them."""
    path = f"{Path(devcluster.program('kubectl')).parent}:/usr/bin:/bin"
    command = [str(PLUGIN), "dashboard", "--no-open", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PATH": path}) as forward:
        try:
            assert forward.stdout is not None
            told = forward.stdout.readline() + forward.stdout.readline()
            found = re.search(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)", told)
            assert found is not None, told
            yield found.group(1), found.group(2)
        finally:
            forward.terminate()


async def token_of(kube: KubeClient, name: str, namespace: str) -> str:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    made = await kube.create_subresource(ACCOUNTS, name, "token", request, namespace)
    token: str = made["status"]["token"]
    return token


async def user_of(kube: KubeClient, namespace: str, name: str) -> str:
    """A user who may see TrainingJobs of the namespace; the token."""
    await kube.create(ACCOUNTS, {"metadata": {"name": name}}, namespace)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    await kube.create(BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}, namespace)
    return await token_of(kube, name, namespace)


@pytest_asyncio.fixture
async def training(kube: KubeClient, namespace: str, pools: None, dashboard: None) -> AsyncIterator[None]:
    await submit(
        kube, namespace, "trains", gpus=1, gpuTypes=["A100"], steps=100_000, preemption="Signal",
        template=restricted_template(["python3", "-c", TRAIN]),
        profile={"mode": "Provided", "matrices": [matrix("A100", {200: 20.0, 400: 40.0}, 256 << 20)]},
        resources={"max": {"cpu": "400m", "memory": "256Mi"}},
    )  # fmt: skip
    await reaches(kube, namespace, "trains", "Running", seconds=120)
    yield


async def test_the_dashboard_shows_what_runs_to_those_who_may_see_it(
    kube: KubeClient, namespace: str, training: None, devcluster: synergy_devcluster.Cluster, tmp_path: Path
) -> None:
    with opened(devcluster, devcluster.kubeconfig) as (address, admin):
        async with aiohttp.ClientSession(address) as http:

            async def get(path: str, token: str) -> tuple[int, Any]:
                async with http.get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {token}"}) as answer:
                    return answer.status, await answer.json()

            async with http.get("/") as page:
                assert page.status == 200
                assert "default-src 'self'" in page.headers["Content-Security-Policy"]
                assert "<title>" in await page.text()
            full_name = f"{namespace}/trains"
            status, cluster = await get("cluster", admin)
            assert status == 200
            assert full_name in [row["job"] for row in cluster["jobs"]]
            assert next(row for row in cluster["types"] if row["gpu_type"] == "A100")["gpus_given"] == 1

            own = await user_of(kube, namespace, "ann")
            assert (await get("me", own))[1]["namespaces"] == [namespace]

            async def is_recorded() -> bool:
                _, found = await get(f"jobs/{full_name}", own)
                return [run["run"] for run in found["runs"] if run["started_s"]] != []

            await eventually(is_recorded, seconds=60, what="the run to be recorded")

            stranger = await user_of(kube, "default", f"bob-{namespace}")
            assert (await get(f"jobs/{full_name}", stranger))[0] == 403
            assert (await get("cluster", "made-up"))[0] == 401
            await kube.delete(BINDINGS, f"bob-{namespace}", "default")
            await kube.delete(ACCOUNTS, f"bob-{namespace}", "default")


async def test_the_page_in_a_browser_follows_the_cluster(
    kube: KubeClient, namespace: str, training: None, devcluster: synergy_devcluster.Cluster
) -> None:
    path = needed.chromium()
    full_name = f"{namespace}/trains"
    wrong: list[str] = []
    with opened(devcluster, devcluster.kubeconfig) as (address, admin):
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            page = await browser.new_page()
            page.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
            page.on("request", lambda one: None if one.url.startswith((address, "data:")) else wrong.append(one.url))
            await page.goto(f"{address}/#token={admin}")
            await expect(page.get_by_text("1 of 2 given", exact=True).first).to_be_visible(timeout=30_000)
            assert admin not in page.url
            await submit(
                kube, namespace, "waits", gpus=2, gpuTypes=["A100"], steps=100, profile={"mode": "Skip"},
                template=restricted_template(["python3", "-c", TRAIN]), resources={"max": {"memory": "256Mi"}},
            )  # fmt: skip
            await page.get_by_role("link", name="Queue").click()
            await expect(page.get_by_role("link", name=f"{namespace}/waits").first).to_be_visible(timeout=60_000)
            await page.goto(f"{address}/#/job/{full_name}")
            await expect(page.get_by_role("heading", level=1)).to_have_text(full_name, timeout=30_000)
            await expect(page.get_by_role("heading", name="Sensitivity: speed by CPU and memory")).to_be_visible(
                timeout=30_000
            )
            for name in ("Rounds", "Tenants", "What-if", "Policy"):
                await page.get_by_role("link", name=name, exact=True).click()
                await expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=30_000)
            await browser.close()
    assert wrong == []


async def test_the_history_goes_on_after_the_dashboard_was_killed(
    kube: KubeClient, namespace: str, training: None, devcluster: synergy_devcluster.Cluster, tmp_path: Path
) -> None:
    """Its pod stays, its container begins anew with what the volume has."""
    selector = "app.kubernetes.io/component=dashboard"

    async def restarts() -> int:
        (pod,) = (await kube.list(PODS, "kube-synergy", label_selector=selector))["items"]
        (container,) = pod["status"]["containerStatuses"]
        return int(container["restartCount"]) if container["ready"] else -1

    (pod,) = (await kube.list(PODS, "kube-synergy", label_selector=selector))["items"]
    kill = ["-n", "kube-synergy", "exec", pod["metadata"]["name"], "--", "python3", "-c"]
    program = str(devcluster.program("kubectl"))
    config = f"--kubeconfig={devcluster.kubeconfig}"
    await asyncio.sleep(2)  # changes of half a second are one transaction
    await asyncio.to_thread(
        subprocess.run, [program, config, *kill, "import os; os.kill(1, 15)"], check=False, capture_output=True
    )

    async def is_back() -> bool:
        return await restarts() == 1

    await eventually(is_back, seconds=120, what="the dashboard to be back")
    token = await user_of(kube, namespace, "ann")

    with opened(devcluster, devcluster.kubeconfig) as (address, _):
        async with (
            aiohttp.ClientSession(address, headers={"Authorization": f"Bearer {token}"}) as http,
            http.get(f"/api/v1/jobs/{namespace}/trains") as answer,
        ):
            page = await answer.json()
    assert [run["run"] for run in page["runs"] if run["purpose"] == "Train"] == [1]
    assert page["runs"][0]["seen"] is True
