"""`python3 -m synergy_dashboard.api.future`: reads the cluster, and answers one question about its future.

The question is JSON on standard input, the answer JSON on standard output.
"""

import asyncio
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, Final

from synergy_api.cluster.nodes import Object
from synergy_api.timestamps import format_time
from synergy_core.collector import collector_paused
from synergy_core.model.snapshot import FieldError, Job, Snapshot
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, read_job
from synergy_extender.planning.future import future_snapshot
from synergy_extender.planning.policy import PolicyInForce, policy_in_force, with_prices
from synergy_extender.snapshot.snapshot import BuiltSnapshot
from synergy_kube import KubeClient
from synergy_service.nesting import admit_deep_objects
from synergy_simulator.forecast.options import options_of_snapshot
from synergy_simulator.forecast.what_if import Change, document, what_if
from synergy_view.remedies import Help, what_would_help

_READ_SECONDS: Final = 30.0
_PRIORITY_CLASS: Final = "kube-synergy-worker"
"""The priority class that the chart gives to workers whose template names none."""
_NEEDED: Final = frozenset({"nodes", "trainingjobs"})
"""The other collections are optional. Without them the resources of other pods count as free."""
_ANY_NAMESPACE: Final = "default"
_NICE: Final = 10
"""The dashboard itself has precedence."""
_MOST_BYTES: Final = 600 << 20
"""A question that needs more memory fails. Above the container's limit the kernel would kill the recorder too."""
_HELP_SECONDS: Final = 5.0
"""After so long, no further change is tried that would help a job."""
_FIRST_SECONDS: Final = 20.0
"""If the cluster as it is takes longer to simulate, both futures do not come while the dashboard waits."""
_MOST_NODES: Final = 20_000
"""Maximum number of added nodes in total."""


async def cluster_now(kubeconfig: str | None) -> tuple[ClusterState, Object | None]:
    """The cluster and its policy as the extender sees them. Raises PermissionError if they cannot be read."""
    async with await KubeClient.connect(kubeconfig) as client:
        cache = ClusterCache(client, lambda: None, _PRIORITY_CLASS)
        async with asyncio.timeout(_READ_SECONDS):
            hidden = await cache.read_once(_ANY_NAMESPACE)
        missing = sorted(_NEEDED & (hidden.at_all | hidden.elsewhere))
        if missing:
            raise PermissionError(f"the dashboard may not list all {' and '.join(missing)}")
        return cache.state(), cache.policy


def built(state: ClusterState, written: Object | None, now: float) -> BuiltSnapshot:
    """The cluster as the planner would see it in the next round, with the policy in force."""
    policy = with_prices(policy_in_force(written, PolicyInForce()), PolicyInForce(), state.capacities)
    return future_snapshot(state, policy, now)


def answer(request: Mapping[str, Any], state: ClusterState, written: Object | None, now: float) -> dict[str, Any]:
    """The two futures, or `error` with its `code`."""
    started = time.perf_counter()
    try:
        before = built(state, written, now).snapshot
        change = _change(request, state, written, now)
        with collector_paused(), _alarm(_FIRST_SECONDS):
            as_is, other = what_if(before, change, between=_no_alarm)
    except _TooLongError:
        return {"code": 503, "error": _too_large(before)}
    except FieldError as error:
        return {"code": 422, "error": f"{error.path.lstrip('-').replace('-', '_')}: {error.problem}"}
    return document(as_is, other, seconds=time.perf_counter() - started)


class _TooLongError(Exception):
    """The alarm has rung."""


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise _TooLongError in the block after so long, unless `_no_alarm` is called before."""

    def ring(*_: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        _no_alarm()
        signal.signal(signal.SIGALRM, before)


def _no_alarm() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)


def _too_large(snapshot: Snapshot) -> str:
    gpus = sum(node.gpus for node in snapshot.nodes)
    return (
        f"the future of {len(snapshot.jobs)} jobs on {gpus} GPUs takes too long to simulate here; "
        "kubectl synergy what-if finds it on your machine, which takes as long as it needs"
    )


def helped(job: str, state: ClusterState, written: Object | None, now: float) -> dict[str, Any]:
    """What would make a job start in the next round, found out within a bounded time."""
    until, snapshot = time.perf_counter() + _HELP_SECONDS, built(state, written, now).snapshot
    with collector_paused():
        plan = options_of_snapshot(snapshot).plan
        found = what_would_help(snapshot, plan, job, lambda: time.perf_counter() < until)
    return {"planned": found is not None, **asdict(found or Help())}


def _change(request: Mapping[str, Any], state: ClusterState, written: Object | None, now: float) -> Change:
    config: dict[str, Any] = {key: _value(text) for key, text in (request.get("options") or {}).items()}
    config |= {name: request[name] for name in ("policy", "mechanism", "round_s") if request.get(name)}
    pools = {one.pool: one.name for one in reversed(state.capacities) if one.pool}
    nodes: dict[str, int] = {}
    for name, count in (request.get("add_nodes") or {}).items():
        if not 0 < count <= 100_000:
            raise FieldError("add_nodes", f"{name!r} needs a count from 1 to 100000, is {count}")
        nodes[pools.get(name, name)] = count
    if sum(nodes.values()) > _MOST_NODES:
        raise FieldError("add_nodes", f"{sum(nodes.values())} nodes are more than {_MOST_NODES}; add fewer")
    manifest = request.get("add_job")
    return Change(
        add_jobs=() if manifest is None else (_added(manifest, state, written, now),),
        add_nodes=nodes,
        remove_nodes=request.get("remove_nodes") or (),
        drain_nodes=request.get("drain_nodes") or (),
        config=config,
    )


def _added(manifest: Mapping[str, Any], state: ClusterState, written: Object | None, now: float) -> Job:
    """The job as the planner would see it once it is queued. A job without matrices gets those of a job of the same
    program, as after its profile runs. Raises FieldError."""
    view = job_view(manifest, now)
    if view.key in state.jobs:
        raise FieldError("add_job", f"there is a job {view.key} already; give it another name")
    after = built(replace(state, jobs={**state.jobs, view.key: view}), written, now)
    job = next((one for one in after.snapshot.jobs if one.name == str(view.key)), None)
    if job is None:
        found = after.refused.get(view.key)
        raise FieldError("add_job", f"the job would not be planned: {found.message if found else 'it wants nothing'}")
    measured = after.snapshot.model_profiles.get(view.model, {}).get(str(job.gpus), {})
    return job if job.profiles else replace(job, profiles=measured)


def job_view(manifest: Mapping[str, Any], now: float) -> JobView:
    """A job that has just entered the queue. Raises FieldError."""
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
    """Exit code 0 with an answer, also if the answer is an error."""
    os.nice(_NICE)
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
    admit_deep_objects()
    question = json.load(sys.stdin)
    try:
        state, written = asyncio.run(cluster_now(question["kubeconfig"]))
    except PermissionError as error:
        told: dict[str, Any] = {"code": 503, "error": str(error)}
    else:
        if "help" in question:
            told = helped(question["help"], state, written, time.time())
        else:
            told = answer(question["request"], state, written, time.time())
    sys.stdout.write(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
