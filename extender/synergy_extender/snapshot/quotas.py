"""ResourceQuotas in a plan: what they leave to the jobs that it moves, and what is free of them now.

What the API server counts as used holds our own pods too. A plan may move those of running jobs, so what these hold is
subtracted; what outlived its run, finished or belongs to others stays.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.devices import counted_as
from synergy_api.names import RESOURCE_GPU
from synergy_api.parts.allocation import NodeShare
from synergy_api.quantity import LARGEST
from synergy_core.model import snapshot as core
from synergy_extender.cluster.ledger import amounts_of_share
from synergy_extender.cluster.own_pods import own_pods
from synergy_extender.cluster.quota_views import OF_JOBS, OF_PODS, OF_SERVICES, QuotaView, counted
from synergy_extender.cluster.run_state import open_run
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, PodView

Uses = dict[tuple[str, str], int]
"""Amounts by quota (namespace/name) and resource."""


class NamespaceQuotas:
    """The quotas of a cluster by namespace, and what jobs draw on them."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._of: dict[str, list[QuotaView]] = {}
        for quota in sorted(state.quotas, key=str):
            self._of.setdefault(quota.namespace, []).append(quota)
        self._resource = {capacity.name: capacity.resource for capacity in state.capacities}

    def __bool__(self) -> bool:
        return bool(self._of)

    def concern(self, job: JobView) -> bool:
        """Whether any of them may count what the job has."""
        return job.key.namespace in self._of

    def draws(self, job: JobView, *, profile: bool) -> tuple[core.QuotaDraw, ...]:
        """What a run of the job counts with beside its share of its nodes."""
        made = OF_JOBS if profile else OF_SERVICES if self._needs_service(job) else frozenset()
        found = []
        for quota in self._of.get(job.key.namespace, ()):
            if not quota.counts(job.scoped, self._state.priority_class):
                continue
            once, per_pod = {}, {}
            for resource in quota.hard:
                if resource in made:
                    once[resource] = 1
                elif (beside := _beside(job, resource)) > 0:
                    per_pod[resource] = beside
            found.append(core.QuotaDraw(quota=str(quota), once=once, per_pod=per_pod))
        return tuple(found)

    def with_draws(self, jobs: Iterable[core.Job], views: Mapping[str, JobView]) -> list[core.Job]:
        """The planner's jobs, each with what it draws."""
        found = []
        for job in jobs:
            view = views[job.name]
            draws = self.draws(view, profile=job.purpose == "profile")
            size = view.spec.gpus_per_worker if job.purpose == "train" else None
            found.append(replace(job, quotas=draws, gpus_per_worker=size) if draws else job)
        return found

    def limits(self, moved: Iterable[JobView]) -> tuple[core.Quota, ...]:
        """The quotas for a plan that may move the pods of these jobs' open runs."""
        ours: Uses = {}
        for job in moved if self._of else ():
            _add(ours, self.held(job))
        found = []
        for quotas in self._of.values():
            for quota in quotas:
                limits = tuple(
                    core.QuotaLimit(
                        resource=resource,
                        counts=counted(resource),
                        hard=min(hard, LARGEST),
                        used=min(max(0, quota.used.get(resource, 0) - ours.get((str(quota), resource), 0)), LARGEST),
                    )
                    for resource, hard in quota.hard.items()
                )
                found.append(core.Quota(name=str(quota), limits=limits))
        return tuple(found)

    def held(self, job: JobView) -> Uses:
        """What the API server counts for the open run: its pods that have not ended, and its profile Job."""
        allocation = open_run(job)
        if allocation is None or job.key.namespace not in self._of:
            return {}
        pods = own_pods(job, allocation, self._state.pods)
        profile = allocation.purpose == "Profile"
        amounts = [self._of_pod(pod, pod.node or pod.planned_node) for pod in pods]
        uses = self._uses(job, amounts, len(pods), profile=profile) if pods else {}
        return {entry: amount for entry, amount in uses.items() if entry[1] not in OF_SERVICES}

    def asked(self, job: JobView, shares: Iterable[NodeShare], *, profile: bool) -> Uses:
        """What a run with these shares counts with."""
        if job.key.namespace not in self._of:
            return {}
        amounts, pods = [], 0
        for share in shares:
            size = share.gpus if profile else job.spec.gpus_per_worker or share.gpus
            pods += -(-share.gpus // size)
            whole = amounts_of_share(share)
            amounts.append((share.resource or self._resource.get(share.node, ""), whole))
        return self._uses(job, amounts, pods, profile=profile)

    def _needs_service(self, job: JobView) -> bool:
        return job.spec.has_gang and job.key not in self._state.services

    def _of_pod(self, pod: PodView, node: str) -> tuple[str, Amounts]:
        return self._resource.get(node, ""), pod.requests

    def _uses(self, job: JobView, amounts: Iterable[tuple[str, Amounts]], pods: int, *, profile: bool) -> Uses:
        total = NOTHING
        gpus: Counter[str] = Counter()
        for resource, one in amounts:
            total = total.plus(one)
            gpus[counted_as(resource or RESOURCE_GPU)] += one.gpus
        sums = {**gpus, **total.fields}
        uses: Uses = {}
        by_name = {str(quota): quota for quota in self._of[job.key.namespace]}
        for draw in self.draws(job, profile=profile):
            for resource in by_name[draw.quota].hard:
                amount = draw.once.get(resource, 0) + draw.per_pod.get(resource, 0) * pods
                amount += sums.get(counted(resource), 0)
                if amount > 0:
                    uses[draw.quota, resource] = amount
        return uses


class FreeQuotas:
    """What is free of each quota now. Runs that were granted take what their pods do not hold yet."""

    def __init__(self, state: ClusterState) -> None:
        self._quotas = NamespaceQuotas(state)
        self._free: Uses = {
            (str(quota), resource): hard - quota.used.get(resource, 0)
            for quota in state.quotas
            for resource, hard in quota.hard.items()
        }
        for job in state.jobs.values() if self._quotas else ():
            allocation = open_run(job) if self._quotas.concern(job) else None
            if allocation is not None and allocation.state == "Granted":
                shares, profile = allocation.workers, allocation.purpose == "Profile"
                self._reserve(_lacking(self._quotas.asked(job, shares, profile=profile), self._quotas.held(job)))

    def take(self, job: JobView, shares: Iterable[NodeShare], *, profile: bool) -> bool:
        """Take what a new run with these shares needs, if all of it is free."""
        return self._take(self._quotas.asked(job, shares, profile=profile)) if self._quotas else True

    def grow(self, job: JobView, now: Iterable[NodeShare], then: Iterable[NodeShare]) -> bool:
        """Take what an open run needs beyond what it has, if all of it is free."""
        if not self._quotas:
            return True
        have = self._quotas.asked(job, now, profile=False)
        for entry, amount in self._quotas.held(job).items():
            have[entry] = max(have.get(entry, 0), amount)
        return self._take(_lacking(self._quotas.asked(job, then, profile=False), have))

    def _take(self, uses: Uses) -> bool:
        if any(amount > self._free.get(entry, amount) for entry, amount in uses.items()):
            return False
        self._reserve(uses)
        return True

    def _reserve(self, uses: Uses) -> None:
        _add(self._free, {entry: -amount for entry, amount in uses.items()})


def _beside(job: JobView, resource: str) -> int:
    """What each pod counts with beside its share of its node."""
    if resource in OF_PODS:
        return 1
    if resource.startswith("limits."):
        return int(getattr(job.scoped.limits_beside, counted(resource)))
    return 0


def _lacking(asked: Uses, held: Uses) -> Uses:
    return {e: amount - held.get(e, 0) for e, amount in asked.items() if amount > held.get(e, 0)}


def _add(total: Uses, more: Mapping[tuple[str, str], int]) -> None:
    for entry, amount in more.items():
        total[entry] = total.get(entry, 0) + amount
