"""Operator and extender as processes send spans to a receiver on loopback."""

from pathlib import Path

import pytest

import synergy_devcluster
from support.extender.world import without_the_product
from support.on_cluster.jobs import reaches
from support.otlp import receiver
from support.shared_day.day import product
from support.waiting import eventually
from synergy_cli.bench.e2e.load import apply_jobs
from synergy_kube import KubeClient
from synergy_service.tracing import VARIABLE

OF_EXTENDER = {"pass", "build_snapshot", "plan", "decide", "write", "filter", "bind"}
OF_OPERATOR = {"reconcile", "act"}


@pytest.mark.integration
async def test_the_spans_of_a_job_that_starts(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    custom_resources: None,
    namespace: str,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
    with receiver() as found:
        monkeypatch.setenv(VARIABLE, found.address)
        async with without_the_product(kube), product(devcluster, kube, tmp_path, 20):
            await apply_jobs(kube, namespace, ["traced"])
            await reaches(kube, namespace, "traced", "Running", seconds=60)

            async def all_there() -> bool:
                return {span.name for span in found.spans} >= OF_EXTENDER | OF_OPERATOR

            await eventually(all_there, seconds=30, what="spans of each kind")
            # before the end: a replica that stops gives the lead away first, which a pass may be told by an error
            assert not [span.error for span in found.named("pass") if span.error]
        sent = {(span.service, span.name) for span in found.spans}
        assert sent >= {("kube-synergy-extender", name) for name in OF_EXTENDER}
        assert sent >= {("kube-synergy-operator", name) for name in OF_OPERATOR}
        assert {found.parent_of(span) for name in ("plan", "decide", "write") for span in found.named(name)} == {"pass"}
        assert {found.parent_of(span) for span in found.named("act")} == {"reconcile"}
        assert {span.attributes["job"] for span in found.named("reconcile")} >= {"traced"}
        assert {span.attributes["namespace"] for span in found.named("bind")} == {namespace}
