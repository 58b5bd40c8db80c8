"""The visible part of the cluster, as the initial state of a simulation."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kube_synergy.live.cluster import Cluster, Object
from synergy_api.timestamps import format_time
from synergy_core.model.snapshot import Job, Snapshot
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.one_look import Hidden
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import Key, read_job
from synergy_extender.planning.future import future_snapshot
from synergy_extender.planning.policy import PolicyInForce, policy_in_force, with_prices
from synergy_extender.snapshot.snapshot import BuiltSnapshot

_PRIORITY_CLASS = "kube-synergy-worker"
"""The priority class that the chart gives to workers whose template names none."""


class NodesHiddenError(Exception):
    """The user may not list nodes, so nothing can be simulated."""


@dataclass(frozen=True)
class Present:
    """The visible part of the cluster at one moment; `notes` name the parts that are left out."""

    state: ClusterState
    policy: PolicyInForce
    now: float
    notes: tuple[str, ...] = ()

    def built(self, written: Object | None = None) -> BuiltSnapshot:
        """The snapshot at which forecasts begin; `written` replaces the SchedulingPolicy."""
        policy = self.policy if written is None else in_force(written, self.state)
        return future_snapshot(self.state, policy, self.now)

    @property
    def snapshot(self) -> Snapshot:
        """The same, without what could not be planned."""
        return self.built().snapshot


async def look(cluster: Cluster) -> Present:
    """Read the cluster once. Raises NodesHiddenError."""
    cache = ClusterCache(cluster.client, lambda: None, _PRIORITY_CLASS)
    namespace = cluster.own_namespace
    hidden = await cache.read_once(namespace)
    if "nodes" in hidden.at_all:
        raise NodesHiddenError
    state = cache.state()
    policy = in_force(cache.policy, state)
    return Present(state, policy, time.time(), tuple(_notes(hidden, namespace, policy)))


def in_force(written: Mapping[str, Any] | None, state: ClusterState) -> PolicyInForce:
    """The policy in force."""
    return with_prices(policy_in_force(written, PolicyInForce()), PolicyInForce(), state.capacities)


def _notes(hidden: Hidden, namespace: str, policy: PolicyInForce) -> Iterator[str]:
    if "trainingjobs" in hidden.elsewhere:
        yield f"you may list TrainingJobs of {namespace} only: what others hold and wait for is not considered"
    if "pods" in hidden.elsewhere | hidden.at_all:
        yield "you may not list all pods: what pods hold that no plan moves counts as free"
    if "schedulingpolicies" in hidden.at_all:
        yield "you may not see the SchedulingPolicy: its defaults are assumed"
    elif policy.problem:
        yield f"the SchedulingPolicy is not followed, its defaults are assumed: {policy.problem}"
    others = sorted((hidden.at_all | hidden.elsewhere) & {"gpupools", "resourcequotas", "tenants", "namespaces"})
    if others:
        yield f"you may not list all {', '.join(others)}: plans of the cluster may differ"


def new_job(present: Present, manifest: Object, namespace: str) -> Job:
    """A TrainingJob that does not exist, as the planner would see it once it is queued.

    A job that brings no matrices gets those of a job of the same program, as it would after its profile runs. Raises
    ValueError where the job could not be planned.
    """
    metadata = manifest.get("metadata") or {}
    name = metadata.get("name") or f"{metadata.get('generateName', 'new-')}job"
    key = Key(metadata.get("namespace") or namespace, name)
    if key in present.state.jobs:
        raise ValueError(f"there is a TrainingJob {key} already; give the new one another name")
    item: dict[str, Any] = {
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "uid": "new",
            "resourceVersion": "0",
            "creationTimestamp": format_time(float(int(present.now))),
        },
        "spec": manifest.get("spec") or {},
        "status": {"phase": "Queued"},
    }
    view = read_job(item)
    after = replace(present, state=replace(present.state, jobs={**present.state.jobs, key: view})).built()
    if key in after.refused:
        raise ValueError(f"the job could not be planned: {after.refused[key].message}")
    job = next(one for one in after.snapshot.jobs if one.name == str(key))
    if job.profiles:
        return job
    return replace(job, profiles=after.snapshot.model_profiles.get(view.model, {}).get(str(job.gpus), {}))
