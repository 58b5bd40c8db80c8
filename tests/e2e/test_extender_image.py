"""The extender's image has what its code needs, though it was made smaller than what its requirements bring."""

from pathlib import Path

import pytest

import synergy_devcluster
from support.on_cluster.jobs import logs, restricted_template
from support.waiting import eventually
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import KubeClient
from synergy_kube.resources import PODS

pytestmark = pytest.mark.e2e

SCRIPT = """
import importlib, os, pkgutil
import synergy_core, synergy_extender
for package in (synergy_core, synergy_extender):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)

from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_core.policies.rounds.time_shares import NAMES
from synergy_core.model.snapshot_format import parse_snapshot
snapshot = parse_snapshot(os.environ["SNAPSHOT"])
for policy in NAMES:
    if "cost" not in policy:
        for mechanism in ("tune", "opt"):
            assert plan(snapshot, PlanConfig(policy=policy, mechanism=mechanism)).allocations, (policy, mechanism)
            print(policy, mechanism)
"""
"""Every module of it, and every solver: HiGHS by CVXPY and by itself, SciPy's."""


async def test_all_of_the_code_runs_on_what_the_image_has(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, product: None, namespace: str, repository: Path
) -> None:
    template = restricted_template(["python3", "-c", SCRIPT])
    (container,) = template["spec"]["containers"]
    snapshot = (repository / "examples" / "snapshots" / "two-servers.json").read_text()
    container |= {"image": "localhost/kube-synergy-extender:dev", "env": [{"name": "SNAPSHOT", "value": snapshot}]}
    spec = {**template["spec"], "restartPolicy": "Never", "nodeName": REAL_NODE}
    await kube.create(PODS, {"metadata": {"name": "whole"}, "spec": spec}, namespace)

    async def ended() -> str | None:
        phase: str = (await kube.get(PODS, "whole", namespace))["status"].get("phase", "")
        return phase if phase in ("Succeeded", "Failed") else None

    phase = await eventually(ended, seconds=120, what="the pod to end")
    text = logs(devcluster, namespace, "whole")
    assert phase == "Succeeded", text
    assert {"max-min-fairness tune", "allox opt"} <= set(text.splitlines())
