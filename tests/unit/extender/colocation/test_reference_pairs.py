"""Pairs that profile runs measured: where they are asked for, what the plan makes of them, and what metrics tell."""

from dataclasses import replace
from typing import Any

import pytest

from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import GI, NOW, job, node_object
from support.extender.leads import Leads
from support.extender.shared import shared_cluster
from synergy_api.cluster.pools import node_capacities
from synergy_api.timestamps import format_time
from synergy_core.colocation.predictors.estimator import Estimator
from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.colocation.predictors.references import References
from synergy_core.colocation.rules import Rules
from synergy_core.model import snapshot as core
from synergy_core.model.config import PlanConfig
from synergy_core.model.usage import Usage
from synergy_extender.cluster.views import JobView
from synergy_extender.metrics import Metrics
from synergy_extender.planning.policy import PolicyInForce
from synergy_extender.planning.publisher import Publisher
from synergy_extender.snapshot.snapshot import build_snapshot

REQUEST = {"gpuType": "V100", "gpus": 1, "cpuMillis": 4000, "memoryBytes": 8 * GI, "shared": True}
USAGE = {"gpuType": "V100", "compute": 0.4, "bandwidth": 0.2, "memory": "2Gi"}
TABLE = {
    (one, other): 0.5 if {one, other} == {"Heavy"} else 0.7 if one == "Heavy" else 0.8 if other == "Heavy" else 1.0
    for one in ("Light", "Heavy")
    for other in ("Light", "Heavy")
}


def pair(**more: Any) -> dict[str, Any]:
    told = {"gpuType": "V100", "model": "Heavy", "reference": "r", "kept": 0.5, "referenceKept": 0.5}
    usage = {**USAGE, "model": "Heavy"}
    return {**told, "usage": usage, "gpuSeconds": 70.0, "measuredAt": format_time(NOW), **more}


def measured(*pairs: dict[str, Any], **status: Any) -> JobView:
    """A job that profile runs measured beside references."""
    matrix = {"gpuType": "V100", "cpuMillis": [3000], "memoryBytes": [GI], "stepsPerSecond": [[10.0]]}
    match = {"gpuType": "V100", "model": "Heavy", "confidence": 0.9, "uncertainty": 0.1, "pairs": 1, "references": 3}
    profile = {
        "state": "Complete",
        "matrices": [matrix],
        "pairs": list(pairs),
        "matches": [{**match, "gpuSeconds": 70.0, "savedGPUSeconds": 140.0}],
    }
    spec = {"sharing": {"allowed": True, "usage": [{**USAGE, "model": "New"}]}, "profile": {"mode": "Auto"}}
    return job("new", spec=spec, status={"phase": "Queued", "profile": profile, **status})


def snapshot_of(*jobs: JobView) -> core.Snapshot:
    return build_snapshot(shared_cluster(jobs), mode="round", now=NOW, round_s=20).snapshot


def test_a_run_beside_a_reference_asks_for_nodes_with_shared_gpus_only() -> None:
    asking = job("p", gpus=1, status={"phase": "Profiling", "profile": {"state": "Waiting", "request": REQUEST}})
    state = shared_cluster([asking])
    other = node_object("n2")
    capacities = [*state.capacities, *node_capacities([other], [])]
    (wish,) = snapshot_of(asking).jobs
    assert (wish.purpose, wish.gpus, wish.nodes) == ("profile", 1, ("n1",))
    both = type(state)(**{**vars(state), "capacities": capacities, "nodes": {**state.nodes, "n2": other}})
    (wish,) = build_snapshot(both, mode="round", now=NOW, round_s=20).snapshot.jobs
    assert wish.nodes == ("n1",)


def test_the_plan_predicts_by_the_fingerprint() -> None:
    (told,) = snapshot_of(measured(pair())).jobs
    assert [(one.kept, one.reference_kept, one.usage.model) for one in told.beside_references] == [(0.5, 0.5, "Heavy")]
    estimator = Estimator(References.of(PairTable(TABLE), ["Light", "Heavy"]))
    config = PlanConfig(policy="fifo", colocation="auto", predictors={"V100": estimator})
    light = core.Job(
        name="team/light", gpus=1, tenant=told.tenant, sharing=True,
        usage={"V100": Usage(compute=0.1, bandwidth=0.1, memory_bytes=GI, model="Light")},
    )  # fmt: skip
    node = core.Node(
        name="n", gpu_type="V100", gpus=1, cpu_millis=8000, memory_bytes=64 * GI, replicas=2, gpu_memory_bytes=16 * GI
    )
    for known, kept in ((told, 0.7), (replace(told, beside_references=()), 0.85)):
        rules = Rules((node,), (known, light), config, NOW)
        assert rules.fractions((known, light), "V100")[0] == pytest.approx(kept, abs=0.03)


def test_pairs_that_told_nothing_are_left_out() -> None:
    failed = pair(problem="the job: exit code 1")
    for name in ("kept", "referenceKept", "usage"):
        del failed[name]
    (told,) = snapshot_of(measured(failed)).jobs
    assert told.beside_references == ()


async def test_metrics_say_what_pairs_took_and_saved_and_how_far_the_prediction_was_off() -> None:
    shared = {
        "gpuType": "V100", "partners": ["team/x"], "fraction": 0.55, "ceiling": 1.0, "expected": 0.7, "seconds": 60.0,
        "updatedAt": format_time(NOW),
    }  # fmt: skip
    view = measured(pair(), progress={"run": 1, "shared": [shared]})
    server, metrics = WatchServer(), Metrics()
    async with following(server) as (client, cache):
        publisher = Publisher(client, cache, metrics, lead=Leads(leading=False))
        await publisher.publish(shared_cluster([view]), PolicyInForce(), NOW)
    value = metrics.registry.get_sample_value
    assert value("kube_synergy_reference_pair_gpu_seconds", {"kind": "spent"}) == 70.0
    assert value("kube_synergy_reference_pair_gpu_seconds", {"kind": "saved"}) == 140.0
    assert value("kube_synergy_reference_pair_error") == pytest.approx(0.15)
