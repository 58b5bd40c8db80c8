"""`python3 -m synergy_dashboard.api.future`: reads the cluster, and answers one question about its future.

The question is JSON on standard input, the answer JSON on standard output.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from synergy_api.cluster.nodes import Object
from synergy_api.timestamps import format_time
from synergy_core.collector import collector_paused
from synergy_core.model.config_format import config_document
from synergy_core.model.snapshot import FieldError, Snapshot
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, read_job
from synergy_extender.planning.policy import PolicyInForce, plan_config, policy_in_force
from synergy_extender.snapshot.snapshot import build_snapshot, tenants_of
from synergy_kube import KubeClient
from synergy_kube.nesting import admit_deep_objects
from synergy_simulator.forecast.what_if import Change, document, what_if

_SYNC_SECONDS: Final = 30.0
_NICE: Final = 10
"""The dashboard itself goes first."""


async def cluster_now(kubeconfig: str | None) -> tuple[ClusterState, Object | None]:
    """The cluster and its policy as the extender sees them."""
    async with await KubeClient.connect(kubeconfig) as client:
        cache = ClusterCache(client, lambda: None)
        following = asyncio.create_task(cache.run())
        try:
            async with asyncio.timeout(_SYNC_SECONDS):
                await cache.wait_synced()
            return cache.state(), cache.policy
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


def snapshot_of(state: ClusterState, written: Object | None, now: float) -> Snapshot:
    """The cluster as the planner would see it in the next round, with the policy in force."""
    policy = policy_in_force(written, PolicyInForce())
    built = build_snapshot(
        state, mode="round", now=now, round_s=policy.spec.round_seconds, tenants=tenants_of(policy.spec)
    )
    return replace(built.snapshot, config=config_document(plan_config(policy, "round")))


def answer(request: Mapping[str, Any], state: ClusterState, written: Object | None, now: float) -> dict[str, Any]:
    """The two futures, or `error` with its `code`."""
    started = time.perf_counter()
    try:
        before = snapshot_of(state, written, now)
        change = _change(request, state, before, written, now)
        with collector_paused():
            as_is, other = what_if(before, change)
    except FieldError as error:
        return {"code": 422, "error": f"{error.path.lstrip('-').replace('-', '_')}: {error.problem}"}
    return document(as_is, other, seconds=time.perf_counter() - started)


def _change(
    request: Mapping[str, Any], state: ClusterState, before: Snapshot, written: Object | None, now: float
) -> Change:
    config: dict[str, Any] = {key: _value(text) for key, text in (request.get("options") or {}).items()}
    config |= {name: request[name] for name in ("policy", "mechanism", "round_s") if request.get(name)}
    pools = {one.pool: one.name for one in reversed(state.capacities) if one.pool}
    nodes: dict[str, int] = {}
    for name, count in (request.get("add_nodes") or {}).items():
        if not 0 < count <= 100_000:
            raise FieldError("add_nodes", f"{name!r} needs a count from 1 to 100000, is {count}")
        nodes[pools.get(name, name)] = count
    added = []
    if request.get("add_job") is not None:
        job = job_view(request["add_job"], now)
        if job.key in state.jobs:
            raise FieldError("add_job", f"there is a job {job.key} already; give it another name")
        after = snapshot_of(replace(state, jobs={**state.jobs, job.key: job}), written, now)
        added = [one for one in after.jobs if one.name == str(job.key)]
        if not added:
            raise FieldError("add_job", "the job would not be planned: its tenant's caps or its own spec forbid it")
    return Change(
        add_jobs=added,
        add_nodes=nodes,
        remove_nodes=request.get("remove_nodes") or (),
        drain_nodes=request.get("drain_nodes") or (),
        config=config,
    )


def job_view(manifest: Mapping[str, Any], now: float) -> JobView:
    """A job as if it had just been taken into the queue. Raises FieldError."""
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec")
    if not isinstance(spec, dict):
        raise FieldError("add_job", "spec is missing; add it")
    made = {
        "metadata": {
            "namespace": metadata.get("namespace") or "default",
            "name": metadata["name"],
            "uid": "what-if",
            "resourceVersion": "1",
            "creationTimestamp": format_time(now),
        },
        "spec": spec,
        "status": {"phase": "Queued"},
    }
    try:
        return read_job(made)
    except (ValueError, TypeError, AttributeError) as error:
        raise FieldError("add_job", str(error)) from None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def main() -> int:
    """Exit code 0 with an answer, also where that is an error."""
    os.nice(_NICE)
    admit_deep_objects()
    question = json.load(sys.stdin)
    state, written = asyncio.run(cluster_now(question["kubeconfig"]))
    sys.stdout.write(json.dumps(answer(question["request"], state, written, time.time())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
