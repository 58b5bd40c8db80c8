"""A worker cluster as its own extender sees it, read at this moment."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from synergy_api.timestamps import format_time
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key, read_job
from synergy_extender.planning.future import future_snapshot
from synergy_extender.planning.policy import PolicyInForce, plan_config, policy_in_force, with_prices
from synergy_kube import KubeClient

_PRIORITY_CLASS: Final = "kube-synergy-worker"
"""The priority class that the chart gives to workers whose template names none."""
_ANY_NAMESPACE: Final = "default"
_NEEDED: Final = frozenset({"nodes", "trainingjobs", "namespaces"})
"""Without the others a forecast is less right. Without these it is none."""


class NoForecastError(Exception):
    """The cluster cannot be forecast, or not for this job. The message says why."""


@dataclass(frozen=True)
class Look:
    """A cluster at one moment."""

    state: ClusterState
    policy: PolicyInForce
    namespaces: frozenset[str]
    now: float

    def with_jobs(self, manifests: Iterable[Mapping[str, Any]]) -> "Future":
        """Where a forecast begins, and the jobs as this cluster's planner would see them once they are queued.

        A job without matrices gets those of a job of the same program, as after its profile runs.
        """
        views: dict[Key, JobView] = {}
        problems: dict[str, str] = {}
        for manifest in manifests:
            key = Key(manifest["metadata"]["namespace"], manifest["metadata"]["name"])
            try:
                views[key] = self._view(key, manifest)
            except ValueError as error:
                problems[str(key)] = str(error)
            except Exception as error:  # noqa: BLE001 - the cluster may have the other jobs
                problems[str(key)] = f"it cannot be read as a job: {error!r}"
        built = future_snapshot(replace(self.state, jobs={**self.state.jobs, **views}), self.policy, self.now)
        asked = {str(key): view for key, view in views.items()}
        jobs = {job.name: job for job in built.snapshot.jobs if job.name in asked}
        for key in views:
            if str(key) not in jobs:
                why = built.refused.get(key)
                problems[str(key)] = why.message if why is not None else "its planner would not take the job"
        models = built.snapshot.model_profiles
        return Future(
            replace(built.snapshot, jobs=tuple(job for job in built.snapshot.jobs if job.name not in asked)),
            replace(plan_config(self.policy, "round"), explain=False),
            {
                name: job
                if job.profiles
                else replace(job, profiles=models.get(asked[name].model, {}).get(str(job.gpus), {}))
                for name, job in jobs.items()
            },
            problems,
        )

    def _view(self, key: Key, manifest: Mapping[str, Any]) -> JobView:
        if key.namespace not in self.namespaces:
            raise ValueError(f"it has no namespace {key.namespace}")
        if key in self.state.jobs:
            raise ValueError(f"it has another TrainingJob {key}")
        created = format_time(float(int(self.now)))
        made = {**manifest["metadata"], "uid": "offered", "resourceVersion": "0", "creationTimestamp": created}
        return read_job({"metadata": made, "spec": manifest["spec"], "status": {"phase": "Queued"}})


@dataclass(frozen=True)
class Future:
    """A cluster without the jobs that are asked about, these jobs by name, and why others are not among them."""

    snapshot: Snapshot
    config: PlanConfig
    jobs: Mapping[str, Job]
    problems: Mapping[str, str]


class Observer:
    """Looks at one cluster, again and again."""

    def __init__(self, client: KubeClient) -> None:
        self._cache = ClusterCache(client, lambda: None, _PRIORITY_CLASS)

    async def look(self) -> Look:
        """Read it now. Raises NoForecastError where rights are missing, and as KubeClient does."""
        hidden = await self._cache.read_once(_ANY_NAMESPACE)
        missing = sorted(_NEEDED & (hidden.at_all | hidden.elsewhere))
        if missing:
            raise NoForecastError(f"its kubeconfig may not list all {' and '.join(missing)}")
        state = self._cache.state()
        policy = with_prices(policy_in_force(self._cache.policy, PolicyInForce()), PolicyInForce(), state.capacities)
        names = frozenset(str(one["metadata"]["name"]) for one in self._cache.objects("namespaces"))
        return Look(state, policy, names, time.time())
