"""The I/O around the reconcile: caches that follow the API server, a queue of jobs, an executor.

Reflectors follow the TrainingJobs and all objects that belong to them. After a gap in its watch a reflector compares
its copy with a new list, and also reports the objects that were deleted in between.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from synergy_api.generation.crd import schema_of
from synergy_api.names import LABEL_JOB, ROLE_WORKER
from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import (
    GPU_POOLS,
    JOBS,
    NODES,
    PODS,
    RESOURCE_SLICES,
    SCHEDULING_POLICIES,
    THROUGHPUT_PROFILES,
    TRAINING_JOBS,
)
from synergy_kube.served_schema import SchemaWatch
from synergy_operator.actions import Action, DeleteTrainingJob
from synergy_operator.edge.caches.dependents import Dependents, named_phases
from synergy_operator.edge.caches.jobs import JobCache, turns
from synergy_operator.edge.caches.members import Members
from synergy_operator.edge.caches.objects import Owned, OwnedCache
from synergy_operator.edge.caches.pod_events import PodEventCache
from synergy_operator.edge.caches.policy import PolicyReader
from synergy_operator.edge.caches.profile_candidates import ProfileCandidates
from synergy_operator.edge.caches.profiles import ProfileCache, trim_profile
from synergy_operator.edge.caches.references import ReferenceJobs
from synergy_operator.edge.caches.refusals import RefusalLog
from synergy_operator.edge.environment import Environment
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.executor import Executor
from synergy_operator.edge.managed.owners import Owners, unclaimed
from synergy_operator.edge.metrics import Metrics
from synergy_operator.edge.passes import Passes
from synergy_operator.edge.trimming import VIEW, node_facts, trim_node, trim_slice, trimmed
from synergy_operator.edge.waiting_turns import WaitingTurns
from synergy_operator.edge.warning_reader import WarningReader
from synergy_operator.edge.work_queue import WorkQueue
from synergy_operator.job.reconcile import reconcile
from synergy_operator.job.waiting import wants_to_tell
from synergy_operator.run.partner_failure import partners_of
from synergy_operator.views.batch_job import BatchJobView, read_batch_job
from synergy_operator.views.cluster import ClusterView, read_cluster
from synergy_operator.views.metadata import Key
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView, read_pod
from synergy_operator.views.stored_job import StoredJob
from synergy_service import heap

_LOG = logging.getLogger(__name__)
_SETTLE_SECONDS: Final = 0.05
"""How long to collect changes of nodes and pools."""
_REPEAT_SECONDS: Final = 1.0
"""How long to wait for the watch if a reconcile asks for the same actions again."""
WRITTEN: Final = {
    TRAINING_JOBS: schema_of("TrainingJob", "status"),
    THROUGHPUT_PROFILES: schema_of("ThroughputProfile", "spec", "status"),
}
"""The parts of custom resources that the operator writes."""


class Controller:
    """Everything between the API server and the pure reconcile. `clock` gives Unix time."""

    def __init__(
        self, client: KubeClient, environment: Environment, clock: Callable[[], float], metrics: Metrics | None = None
    ) -> None:
        metrics = metrics or Metrics()
        client.on_error = metrics.api_failed
        self._environment = environment
        self._clock = clock
        self._jobs = JobCache()
        self._pods: OwnedCache[PodView] = OwnedCache()
        self._batch_jobs: OwnedCache[BatchJobView] = OwnedCache()
        self._refusals = RefusalLog(metrics.refused)
        self._pod_events = PodEventCache()
        self._profiles = ProfileCache(client, clock, self._requeue, self._jobs.unfinished)
        self._candidates = ProfileCandidates()
        self._references = ReferenceJobs(lambda: self._cluster.profiling.demand_tolerance_percent)
        self._dependents = Dependents()
        self._members = Members(self._jobs)
        self._waiting_turns = WaitingTurns()
        self._client = client
        self._cluster = ClusterView()
        self._resizable = True
        self._last_actions: dict[Key, tuple[Action, ...]] = {}
        self._schemas = SchemaWatch(client, WRITTEN, "the operator")
        self._settling: asyncio.TimerHandle | None = None
        self._policy = PolicyReader()
        self._queue: WorkQueue[Key] = WorkQueue(metrics.timed(self._reconcile), line=turns(self._jobs))
        metrics.follow_queue(lambda: self._queue.length, lambda: self._queue.oldest_seconds)
        self._passes = Passes(lambda: self._jobs.unfinished() + self._references.outdated(), self._queue.add_in_passing)
        self._events = EventQueue(self._queue.idle)
        self._owners = Owners(
            client,
            environment.managed_kinds,
            cluster=lambda: self._cluster,
            jobs=self._jobs,
            events=self._events,
            clock=clock,
            wake=self._queue.add,
            on_restart=metrics.watch_restarted,
        )
        self._warnings = WarningReader(client, self._pod_events, clock=clock, wake=self._queue.add)
        self._executor = Executor(
            client,
            owners=self._owners.writer,
            jobs=self._jobs,
            pods=self._pods,
            batch_jobs=self._batch_jobs,
            refusals=self._refusals,
            warnings=self._warnings,
            events=self._events,
            clock=clock,
            wake=self._queue.add,
            run_ended=metrics.run_ended,
        )
        follow = partial(Reflector, client, on_restart=metrics.watch_restarted)
        ours = partial(follow, label_selector=LABEL_JOB)
        self._nodes = follow(NODES, trim=trim_node, on_change=self._on_node)
        self._slices = follow(RESOURCE_SLICES, trim=trim_slice, on_change=self._on_cluster, optional=True)
        self._pools = follow(GPU_POOLS, on_change=self._on_cluster)
        self._policies = follow(SCHEDULING_POLICIES, on_change=self._on_cluster)
        self._reflectors = (
            self._nodes,
            self._slices,
            self._pools,
            self._policies,
            follow(TRAINING_JOBS, trim=self._jobs.trim, on_change=self._on_job),
            follow(THROUGHPUT_PROFILES, trim=trim_profile, on_change=self._profiles.update),
            ours(PODS, trim=trimmed(read_pod), on_change=self._on_owned(self._pods)),
            ours(JOBS, trim=trimmed(read_batch_job), on_change=self._on_owned(self._batch_jobs)),
            *self._owners.reflectors,
        )

    async def run(self, ready: asyncio.Event) -> None:
        """Follow the cluster and work until cancelled. `ready` is set once the caches are complete.

        Nothing is reconciled before: a run whose pods are not all in the cache would look as if it had lost them.
        """
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run())
            for reflector in self._reflectors:
                await reflector.synced.wait()
            await self._discover()
            await self._schemas.look()
            self._settle()
            heap.settle()
            ready.set()
            for part in (self._events, self._warnings, self._schemas, self._queue, self._owners, self._profiles):
                group.create_task(part.run())

    @property
    def stuck(self) -> bool:
        """The work on some job does not end."""
        return self._queue.stuck

    async def _discover(self) -> None:
        """Find out what the API server can do. Below 1.33 it resizes no pods: new sizes wait for the next run."""
        self._resizable = await self._client.serves(PODS, "resize")
        if not self._resizable:
            _LOG.warning("the API server cannot resize pods: CPU and memory of a run do not change until it ends")

    async def _reconcile(self, key: Key) -> float | None:
        job = self._jobs.get(key)
        if job is None:
            self._forget(key)  # also what its pods and the last writes have left since it has been deleted
            return None
        owner = self._owners.of(job)
        observed = Observed(
            job=job,
            owner=owner,
            unclaimed=unclaimed(owner, self._pods.of_job(key)),
            cluster=self._cluster,
            settings=self._environment.settings(),
            pods=tuple(pod for pod in self._pods.of_job(key) if pod.owner == job.uid),
            batch_jobs=tuple(batch for batch in self._batch_jobs.of_job(key) if batch.owner == job.uid),
            profiles=self._profiles.known,
            candidates=self._candidates.by_fingerprint,
            refusals=self._refusals.of(key),
            pod_events=self._pod_events.of(key),
            resizable=self._resizable,
            partners=tuple(
                pod
                for partner in sorted(partners_of(job.status.allocation))
                for pod in self._pods.of_job(partner)
                if pod.role == ROLE_WORKER
            ),
            references=self._references.beside(key),
            members=self._members.of(job),
            named_phases=named_phases(job, self._jobs),
            cycle=self._dependents.cycle(job),
            told_in=self._waiting_turns.turn_in(key, wanted=wants_to_tell(job.status)),
        )
        actions = reconcile(observed, self._clock())
        try:
            await self._executor.carry_out(job, actions.todo)
            self._waiting_turns.carried_out(key, actions.todo)
        finally:
            self._update_indexes(key)
        repeated = actions.todo == self._last_actions.pop(key, ())
        if not actions.todo:
            return actions.requeue_after
        self._last_actions[key] = actions.todo
        # the watch says that a deleted job is gone: looking again at once would delete it twice
        return _REPEAT_SECONDS if repeated or DeleteTrainingJob() in actions.todo else 0.0

    def _on_job(self, change: Change) -> None:
        """A TrainingJob was created, changed or deleted. A job that does not parse keeps the last view."""
        stored: StoredJob | None = (change.new or change.old or {}).get(VIEW)
        self._owners.job_changed(stored)
        if change.new is None:
            self._job_gone(change.key, (change.old or {})["metadata"]["uid"])
        elif stored is not None:
            before = self._jobs.stored(change.key)
            if self._jobs.keep(stored):
                if stored.decides_as(before):
                    return
                self._queue.add(change.key)
        self._update_indexes(change.key)

    def _job_gone(self, key: Key, uid: str) -> None:
        self._jobs.drop(key, uid)
        self._forget(key)
        self._queue.add(key)

    def _forget(self, key: Key) -> None:
        """Nothing is kept of a job that is gone: thousands come and go each day."""
        self._last_actions.pop(key, None)
        self._waiting_turns.forget(key)
        self._refusals.forget(key)
        self._pod_events.forget(key)
        self._executor.forget(key)

    def _on_owned(self, cache: OwnedCache[Any]) -> Callable[[Change], None]:
        def on_change(change: Change) -> None:
            known = cache.get(change.key)  # also of an object of which the last version could not be read
            view: Owned | None = (change.new or change.old or {}).get(VIEW, known)
            if view is None:
                return
            if change.new is None:
                cache.drop(change.key)
                self._refusals.forget_pod((view.namespace, view.job), view.uid)
                if isinstance(view, PodView):
                    self._pod_events.pod_deleted((view.namespace, view.job), view)
            else:
                cache.keep(view)
            for one in (view, known or view):  # its label may have named another job
                self._queue.add((one.namespace, one.job))

        return on_change

    def _on_node(self, change: Change) -> None:
        if change.old is None or change.new is None or node_facts(change.old) != node_facts(change.new):
            self._on_cluster(change)

    def _on_cluster(self, _: Change) -> None:
        if self._settling is None:
            self._settling = asyncio.get_running_loop().call_later(_SETTLE_SECONDS, self._settle)

    def _settle(self) -> None:
        """Update the view of the cluster. If it changed, reconcile the jobs with pods on nodes that came, went or
        changed their state, and in passing all others that are not finished."""
        self._settling = None
        policy = self._policy.read(self._policies.get("", DEFAULT_POLICY_NAME))
        cluster = read_cluster(self._nodes, self._pools, policy, [item[VIEW] for item in self._slices])
        if cluster != self._cluster:
            changed = cluster.nodes_changed_since(self._cluster)
            self._cluster = cluster
            for pod in self._pods:
                if pod.node in changed:
                    self._queue.add((pod.namespace, pod.job))
            self._passes.ask()
            self._owners.cluster_changed()

    def _update_indexes(self, key: Key) -> None:
        """Reconcile its array, and the jobs that wait for this job's profile or its end, if that has changed."""
        job = self._jobs.get(key)
        self._references.update(key, self._jobs.stored(key), job)
        for fingerprint in self._candidates.update(key, job):
            self._requeue(fingerprint)
        for other in self._members.update(key, job) | self._dependents.update(key, job):
            self._queue.add(other)

    def _requeue(self, fingerprint: str) -> None:
        """Reconcile the jobs of a fingerprint that are not finished."""
        for key in self._jobs.unfinished(fingerprint):
            self._queue.add(key)
