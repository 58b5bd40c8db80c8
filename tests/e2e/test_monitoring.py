"""A real Prometheus scrapes the installed product: every panel of the dashboards has data, an alert comes and goes."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from support.on_cluster.jobs import reaches, restricted_template, submit
from support.on_cluster.prometheus import Prometheus, evaluating, expressions, rules
from support.waiting import eventually
from synergy_cli.product import NAMESPACE
from synergy_kube import KubeClient
from synergy_kube.resources import DEPLOYMENTS, PODS, TENANTS, TRAINING_JOBS

pytestmark = pytest.mark.e2e

EXTENDER = "kube-synergy-extender"
BEGINS_WITH_TROUBLE = re.compile(
    "kube_synergy_(verb_refusals_total|refused_writes_total|stand_in_allocations_total|undeclared_fields"
    "|operator_api_errors_total|operator_refusals_total|operator_watch_restarts_total"
    '|dashboard_requests_total{code=~"5..")'
)
"""Metrics whose series begin with the first refusal, error or restart."""

TRAIN = """
import time, synergy_job
for _ in synergy_job.iterate(range(10**6)):
    time.sleep(0.05)
"""


PORTS = {"extender": 8080, "operator": 8081, "dashboard": 8081}
DASHBOARD = "kube-synergy-dashboard"


@pytest.fixture
def prometheus(dashboard: None, tmp_path: Path) -> Iterator[Prometheus]:
    """Its alerts wait for 3 s instead of minutes."""
    quick = rules()
    for group in quick["groups"]:
        for rule in group["rules"]:
            rule["for"] = "3s"
    with evaluating(quick, tmp_path) as server:
        yield server


@pytest_asyncio.fixture
async def lender(kube: KubeClient, namespace: str) -> AsyncIterator[None]:
    """A Tenant whose guarantee nobody claims, and one of the namespace that borrows it."""
    tenants = {f"lends-{namespace}": {"guarantee": {"A100": 2}}, f"borrows-{namespace}": {"namespaces": [namespace]}}
    for name, spec in tenants.items():
        await kube.create(TENANTS, {"metadata": {"name": name}, "spec": spec})
    yield
    for name in tenants:
        await kube.delete(TENANTS, name)


async def find_components(kube: KubeClient, prometheus: Prometheus) -> None:
    """Have Prometheus scrape the pods that there are now, as a ServiceMonitor would."""
    addresses = []
    for component, port in PORTS.items():
        pods = (await kube.list(PODS, NAMESPACE, label_selector=f"app.kubernetes.io/component={component}"))["items"]
        addresses += [f"{pod['status']['podIP']}:{port}" for pod in pods if pod["status"].get("podIP")]
    prometheus.scrape(addresses)


async def look_at_the_page(kube: KubeClient) -> None:
    """One request, without a token: its route has a figure from then on."""
    (pod,) = (await kube.list(PODS, NAMESPACE, label_selector="app.kubernetes.io/component=dashboard"))["items"]
    url = f"http://{pod['status']['podIP']}:8080/api/v1/queue"
    async with aiohttp.ClientSession() as http, http.get(url) as answer:
        assert answer.status == 401


def job(**more: Any) -> dict[str, Any]:
    return {
        "gpus": 1,
        "gpuTypes": ["A100"],
        "steps": 100,
        "template": restricted_template(["python3", "-c", TRAIN]),
        "profile": {"mode": "Skip"},
        "resources": {"max": {"cpu": "400m", "memory": "256Mi"}},
        **more,
    }


async def test_every_panel_has_data_and_nothing_is_critical(
    kube: KubeClient, namespace: str, pools: None, prometheus: Prometheus, lender: None
) -> None:
    await find_components(kube, prometheus)
    await submit(kube, namespace, "trains", **job())
    await reaches(kube, namespace, "trains", "Succeeded", seconds=120)
    # the node has two GPUs, so one of these waits, whatever the policy
    for name in ("both", "one"):
        await submit(kube, namespace, name, **job(gpus=2 if name == "both" else 1, steps=100_000))

    def without_data() -> dict[str, str]:
        found = {}
        for panel, queries in expressions().items():
            for query in queries:
                asked = query.replace("$__rate_interval", "60s").replace("$tenant", ".*")
                if not prometheus.query(asked) and not BEGINS_WITH_TROUBLE.search(asked):
                    found[panel] = asked
        return found

    await look_at_the_page(kube)

    async def all_have_data() -> bool:
        return not await asyncio.to_thread(without_data)

    try:
        await eventually(all_have_data, seconds=30, what="data in every panel")
    except AssertionError:
        raise AssertionError(without_data()) from None
    critical = {rule["alert"] for group in rules()["groups"] for rule in group["rules"] if _is_critical(rule)}
    assert not prometheus.firing() & critical
    for name in ("both", "one"):
        await kube.delete(TRAINING_JOBS, name, namespace)


def _is_critical(rule: dict[str, Any]) -> bool:
    return bool(rule["labels"]["severity"] == "critical")


async def test_an_alert_fires_while_no_extender_runs_and_clears(kube: KubeClient, prometheus: Prometheus) -> None:
    async def fires() -> bool:
        return "KubeSynergyNoLeader" in await asyncio.to_thread(prometheus.firing)

    async def leads() -> bool:
        await find_components(kube, prometheus)
        return bool(await asyncio.to_thread(prometheus.query, "kube_synergy_leader == 1"))

    await eventually(leads, seconds=30, what="a leader that Prometheus sees")
    replicas = (await kube.get(DEPLOYMENTS, EXTENDER, NAMESPACE))["spec"]["replicas"]
    try:
        await kube.merge_patch(DEPLOYMENTS, EXTENDER, {"spec": {"replicas": 0}}, NAMESPACE)
        await eventually(fires, seconds=60, what="the alert")
    finally:
        await kube.merge_patch(DEPLOYMENTS, EXTENDER, {"spec": {"replicas": replicas}}, NAMESPACE)

    async def cleared() -> bool:
        return await leads() and not await fires()

    await eventually(cleared, seconds=120, what="a new leader, and the alert to clear")


async def test_an_alert_fires_while_nothing_is_recorded_and_clears(kube: KubeClient, prometheus: Prometheus) -> None:
    async def fires() -> bool:
        return "KubeSynergyRecordingStopped" in await asyncio.to_thread(prometheus.firing)

    async def records() -> bool:
        await find_components(kube, prometheus)
        behind = "time() - kube_synergy_dashboard_recorded_timestamp_seconds < 10"
        return bool(await asyncio.to_thread(prometheus.query, behind))

    await eventually(records, seconds=60, what="a recorder that Prometheus sees")
    try:
        await kube.merge_patch(DEPLOYMENTS, DASHBOARD, {"spec": {"replicas": 0}}, NAMESPACE)
        await eventually(fires, seconds=60, what="the alert")
    finally:
        await kube.merge_patch(DEPLOYMENTS, DASHBOARD, {"spec": {"replicas": 1}}, NAMESPACE)

    async def cleared() -> bool:
        return await records() and not await fires()

    await eventually(cleared, seconds=60, what="a new recorder, and the alert to clear")
